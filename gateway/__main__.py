"""`tiergate` and `python -m gateway`: the command line, also interrupted while it is still read."""

import sys


def main() -> int:
    """Run the command that the arguments name; the exit code."""
    try:
        from gateway.cli import main as command_line
    except KeyboardInterrupt:
        sys.stderr.write("tiergate: interrupted\n")
        return 130
    return command_line()


if __name__ == "__main__":
    sys.exit(main())
