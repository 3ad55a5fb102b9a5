// Asks one gateway through the official JavaScript SDK and prints what came back as JSON.
// argv: path of the SDK's module, base URL, key.
const [sdk, baseURL, apiKey] = process.argv.slice(2);
const { TypeSafeClient, choice, noul, score } = await import(sdk);

const client = new TypeSafeClient({ baseURL, apiKey, retry: { maxRetries: 0 } });
const models = await client.models.list();
const response = await client.systemOne({
  state: { document: "I was charged twice. Please fix this ASAP." },
  questions: {
    __team: choice(null, { billing: null, technical: null }),
    refund: noul("Does the customer want money back?"),
    mood: score("How upset?", ["calm", { tone: "angry" }]),
  },
});
const failure = await client
  .systemOne({ state: "x", questions: { n: noul("?") }, model: "no-such-model" })
  .catch((error) => ({
    name: error.constructor.name,
    status: error.status,
    requestId: error.requestId,
    message: error.message,
  }));
console.log(JSON.stringify({ models, response, failure }));
