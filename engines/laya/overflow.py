"""What a row lost, and which loss makes a question unreadable."""

from engines.contract import Reason, Unreadable
from engines.laya.rows import Budget, Row


def refuse_unfit(name: str, row: Row, budget: Budget) -> None:
    """Nothing if every option has a place in the row.

    Raises:
        Unreadable: `too_many_options`. Not even the reference answers these.
    """
    if len(row.markers) < row.options:
        raise Unreadable(
            f"only {len(row.markers)} of {row.options} options fit into {budget.max_len} tokens",
            reason=Reason.TOO_MANY_OPTIONS,
            question=name,
            tokens=row.whole,
            max_tokens=budget.max_len,
        )


def refuse_losses(name: str, row: Row, budget: Budget) -> None:
    """Nothing if the row holds every token of state and question.

    Raises:
        Unreadable: `too_many_options`, `options_cut`, `instructions_cut` or `too_long`; the first
            of these that applies.
    """
    refuse_unfit(name, row, budget)
    losses = row.losses
    least = "at least " if losses.at_least else ""
    if losses.cut_options:
        reason = Reason.OPTIONS_CUT
        message = f"{losses.cut_options} of {row.options} options would be cut short"
        if not losses.shortened:
            message += f"; at most {budget.option_len} tokens of each are read"
    elif losses.instructions:
        reason = Reason.INSTRUCTIONS_CUT
        message = f"the instructions are {least}{losses.instructions} tokens too long"
    elif losses.state:
        reason = Reason.TOO_LONG
        message = f"state and question have {least}{row.whole} tokens, at most {budget.max_len} fit"
    else:
        return
    raise Unreadable(
        message, reason=reason, question=name, tokens=row.whole, max_tokens=budget.max_len
    )
