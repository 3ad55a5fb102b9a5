// Draws each table that asks for it as bars by day. The table stays the source, and stays readable.
"use strict";

(() => {
  const DAY_S = 86400;
  const HEIGHT = 160;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const tones = { 1: "--accent", 2: "--two", 3: "--rest" };

  // Columns marked in the head, and their values by day.
  function read(table) {
    const heads = [...table.tHead.rows[0].cells];
    const columns = heads.flatMap((head, at) => (head.dataset.series ? [{ at, head }] : []));
    const days = [...table.tBodies[0].rows].map((row) => {
      const time = row.cells[0].querySelector("time").dateTime;
      const values = columns.map(({ at }) => Number(row.cells[at].querySelector("data")?.value ?? 0));
      return { at: Date.parse(`${time}T00:00:00Z`) / 1000, time, values };
    });
    return { days, series: columns.map(({ head }) => ({ name: head.textContent, tone: head.dataset.series })) };
  }

  const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
  const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const tick = (unit, value) => unit + (unit && value >= 0.1 && value % 1 ? cents : short).format(value);
  const said = (unit, value) => unit + (unit && value >= 0.1 ? cents : exact).format(value);

  function draw(table, figure) {
    const { days, series } = read(table);
    const unit = table.dataset.unit || "";
    const readout = document.createElement("p");
    readout.className = "readout";
    const plot = document.createElement("div");
    figure.replaceChildren(plot, readout);

    const told = (title, values) => {
      const parts = series.map(({ name, tone }, at) => {
        const part = document.createElement("span");
        part.className = `key s${tone}`;
        part.textContent = `${name} ${said(unit, values[at])}`;
        return part;
      });
      const head = document.createElement("span");
      head.textContent = title;
      readout.replaceChildren(head, ...parts);
    };
    const sums = series.map((_, at) => days.reduce((sum, day) => sum + day.values[at], 0));
    const whole = () => told(`${days[0].time} to ${days.at(-1).time}`, sums);
    whole();

    // Stacked: what is drawn first is the sum of all, what is drawn last the first series alone.
    const stacked = series.map((_, at) =>
      days.map((day) => day.values.slice(0, at + 1).reduce((sum, value) => sum + value, 0)));
    const order = series.map((_, at) => at).reverse();
    const bars = uPlot.paths.bars({ size: [0.72, 48], radius: 0.15 });
    const axis = { stroke: () => ink("--dim"), grid: { stroke: () => ink("--line"), width: 1 }, ticks: { show: false } };
    return new uPlot({
      width: Math.max(figure.clientWidth, 200),
      height: HEIGHT,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      legend: { show: false },
      padding: [8, 6, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { range: (_, from, to) => [from - DAY_S * 0.6, to + DAY_S * 0.6] },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 26, space: 58, incrs: [1, 2, 7, 14, 28].map((n) => n * DAY_S),
          values: (_, ticks) => ticks.map((at) => new Date(at * 1000).toISOString().slice(5, 10)) },
        { ...axis, size: 52, values: (_, ticks) => ticks.map((value) => tick(unit, value)) },
      ],
      series: [{}, ...order.map((at) => ({
        label: series[at].name, fill: () => ink(tones[series[at].tone]), width: 0, paths: bars, points: { show: false },
      }))],
      hooks: { setCursor: [(chart) => {
        const at = chart.cursor.idx;
        if (at == null || chart.cursor.left < 0) whole();
        else told(days[at].time, days[at].values);
      }] },
    }, [days.map((day) => day.at), ...order.map((at) => stacked[at])], plot);
  }

  for (const table of document.querySelectorAll("table[data-chart]")) {
    if (typeof uPlot === "undefined") break;
    const behind = table.closest("details");
    const figure = document.createElement("figure");
    figure.className = "chart";
    figure.setAttribute("role", "img");
    figure.setAttribute("aria-label", `${table.caption.textContent}, as bars; the numbers follow as a table`);
    behind.before(figure);
    behind.open = false;
    let chart = draw(table, figure);
    figure.dataset.drawn = "";
    new ResizeObserver(() => {
      const width = Math.max(figure.clientWidth, 200);
      if (width !== chart.width) chart.setSize({ width, height: HEIGHT });
    }).observe(figure);
    dark.addEventListener("change", () => { chart.destroy(); chart = draw(table, figure); });
  }
})();
