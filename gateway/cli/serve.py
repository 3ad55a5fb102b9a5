"""`tiergate serve`: run the gateway until it is told to stop."""

import argparse
import asyncio
from dataclasses import replace

import uvloop

from gateway.cli.grammar import Commands, add_config
from gateway.cli.loading import loading_bar
from gateway.config_file import Configuration, configuration_path, load
from gateway.dashboard.rendering import PATH
from gateway.descriptors import raise_descriptor_limit
from gateway.logs import open_log
from gateway.serving import Outside, bind, serve
from gateway.wiring_plans import refuse_unfit

_GREETING = "tiergate is listening on {url}{auth}"
_PAGE = "its page is {url}{page}"
_EXAMPLE = """
Try it:

curl -s {url}/v1/systemone \\
  -H 'Content-Type: application/json'{header} \\
  -d '{{"state": "I was charged twice for my March invoice, please send the money back.",
       "questions": {{
         "team": {{"type": "choice", "instructions": "Which team should handle this ticket?",
                  "criteria": {{"billing": "Payments, invoices and refunds",
                               "technical": "Bugs, outages and integrations",
                               "sales": "Prices, upgrades and new contracts"}}}},
         "refund": {{"type": "noul", "instructions": "Does the customer ask for money back?"}}}}}}'
"""


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("serve", help="run the gateway")
    add_config(command)
    command.add_argument(
        "--port", type=_port, metavar="PORT", help="instead of server.port; 0 = any free port"
    )
    command.set_defaults(run=run)


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"'{text}' is not a port; give 0 to 65535")
    return int(text)


def run(chosen: argparse.Namespace) -> int:
    """Serve; 0 after a clean stop."""
    path = configuration_path(chosen.config)

    def read() -> Configuration:
        return _on_port(load(path), chosen.port)

    settings = read().settings
    refuse_unfit(settings)  # now, not after gigabytes of weights
    open_log(settings.log)
    raise_descriptor_limit()
    listener = bind(settings)
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def greet(keyless: bool) -> None:
        header = "" if keyless else ' -H "Authorization: Bearer $KEY"'
        auth = " (no keys: loopback only)" if keyless else ""
        lines = [_GREETING]
        if settings.log.format != "json":  # machines neither look nor try
            lines += [_PAGE] if settings.dashboard.enabled else []
            lines.append(_EXAMPLE)
        told = "\n".join(lines).format(url=url, header=header, auth=auth, page=PATH)
        print(told, flush=True)

    with (
        listener,
        loading_bar() as loaded,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(serve(settings, listener, greet, Outside(loaded, read)))
    return 0


def _on_port(configuration: Configuration, port: int | None) -> Configuration:
    """The same with another port, if there is one."""
    settings = configuration.settings
    if port is None:
        return configuration
    server = settings.server.model_copy(update={"port": port})
    return replace(configuration, settings=settings.model_copy(update={"server": server}))
