"""`tiergate fit` as a person or a script uses it: labels in, a head that answers out."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.policy_file import PolicyFile, load_calibration, load_policy, policy_text, suspended

DATA = Path(__file__).parents[1] / "data"
QUESTIONS = json.loads((DATA / "questions.json").read_text(encoding="utf-8"))
SPAM = str(DATA / "sms_spam.test.jsonl")
NEWS = "WINNER!! Claim your free prize now, call 09061701461"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with heads and the vectors of the rows, so that each is read once."""
    folder = tmp_path_factory.mktemp("fitted") / "heads"
    assert main(["fit", SPAM, "--out", str(folder), "--json"]) == 0
    return folder


def config(folder: Path, heads: Path, **cascade: str) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in cascade.items()]
    path = folder / "config.toml"
    path.write_text(
        "\n".join(
            [
                'default_model = "mine"',
                "[cascade]",
                *lines,
                '[engines.fitted]\nkind = "fitted"',
                f"path = {json.dumps(str(heads))}",
                '[engines.starter]\nkind = "starter"',
                '[models.mine]\ntiers = ["fitted", "starter"]',
            ]
        )
    )
    return str(path)


def test_labels_become_a_head_that_answers_its_question_and_no_other(
    vectors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "questions.json"
    topic = {"type": "choice", "criteria": {"advertisement": None, "weather": None}}
    asked.write_text(json.dumps({"s": QUESTIONS["sms_spam"]["spam"], "topic": topic}))
    arguments = ["ask", "--config", config(tmp_path, vectors), "-s", NEWS, "-q", str(asked)]

    assert main([*arguments, "--json"]) == 0

    answers = json.loads(capsys.readouterr().out)["answers"]
    assert answers["s"]["noul"] > 0.5
    assert (answers["s"]["x_engine"], answers["s"]["x_reason"]) == ("fitted", "confident")
    assert answers["topic"]["x_engine"] == "starter"
    assert answers["topic"]["x_reason"] == "unknown_question"


def test_alone_it_refuses_what_it_was_not_fitted_to_by_name(
    vectors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "questions.json"
    asked.write_text(json.dumps({"rude": {"type": "noul", "instructions": "Is it rude?"}}))
    served = Path(config(tmp_path, vectors))
    served.write_text(served.read_text().replace('["fitted", "starter"]', '["fitted"]'))

    code = main(["ask", "--config", str(served), "-s", NEWS, "-q", str(asked)])

    assert code != 0
    assert "was not fitted to 'rude'" in " ".join(capsys.readouterr().err.split())


def test_the_report_says_what_was_found(
    vectors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"

    code = main(["fit", SPAM, "--out", str(vectors), "--report", str(page), "--json"])

    (found,) = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["fitted"]
    assert found["trained_on"] == 100
    assert found["crossed"]["accuracy"] > found["crossed"]["majority"]
    assert len(found["curve"]) == 4
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 2
    assert "http://" not in text
    assert "https://" not in text


def test_a_promise_is_written_where_the_gateway_reads_it(
    vectors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, calibration = tmp_path / "policy.toml", tmp_path / "calibration.json"
    arguments = ["fit", SPAM, "--out", str(vectors), "--policy", str(policy)]

    assert main([*arguments, "--risk", "0.3", "--delta", "0.2", "--hold-out", "0.5"]) == 0

    shown = capsys.readouterr().out
    made = load_policy(policy)
    (floor,) = made.floors
    assert floor.promised
    assert floor.labels > 30
    digest = made.engines["fitted"].digest
    assert suspended(made, load_calibration(calibration), "fitted", digest) is None
    assert "at most 30.0% are wrong" in " ".join(shown.split())
    served = config(tmp_path, vectors, policy=str(policy), calibration=str(calibration))
    assert main(["check", "--config", served]) == 0


def test_a_table_says_how_to_serve_the_heads(
    vectors: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", SPAM, "--out", str(vectors)]) == 0

    shown = capsys.readouterr()
    assert 'kind = "fitted"' in shown.out
    assert "learning curve" in shown.out
    assert "fitting spam" in shown.err


def test_a_question_with_too_few_examples_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join(Path(SPAM).read_text().split("\n")[:9]))
    (tmp_path / "questions.json").write_text(json.dumps(QUESTIONS))

    code = main(["fit", str(few), "--out", str(tmp_path / "heads"), "--json"])

    (found,) = json.loads(capsys.readouterr().out)
    assert code == 1
    assert not found["fitted"]
    assert "at least 20" in found["why"]
    assert list((tmp_path / "heads").glob("*.npz")) == []


def test_a_question_that_no_row_asks_is_refused_with_those_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", SPAM, "--out", str(tmp_path), "--question", "ham"]) == 2

    assert "there are: spam" in capsys.readouterr().err


def test_without_the_extra_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("gateway.fitting")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)

    assert main(["fit", SPAM, "--out", str(tmp_path)]) == 4

    assert "in tiergate's folder: pip install '.[cpu,fit]'" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--risk", "0"], ["--delta", "1"], ["--hold-out", "1"]])
def test_shares_that_are_none_are_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["fit", SPAM, *wrong])

    assert refused.value.code == 2


def test_serving_never_imports_what_training_needs() -> None:
    program = (
        "import sys, gateway.cli, gateway.wiring, engines.fitted.engine\n"
        "print(sorted({'sklearn', 'scipy', 'threadpoolctl'} & set(sys.modules)))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--policy", "{tmp}/none/policy.toml"], 4, "{tmp}/none/policy.toml: No such file"),
        (["--policy", "{tmp}"], 4, "{tmp}: it is a directory, not a file"),
        (["--policy", "{tmp}/broken.toml"], 2, "{tmp}/broken.toml: not valid TOML"),
        (["--policy", "{tmp}/p.toml", "--calibration", "{tmp}/p.toml"], 2, "named twice"),
        (["--report", "{tmp}/rows.jsonl"], 2, "rows.jsonl: it is named twice"),
        (["--calibration", "{tmp}/c.json"], 2, "--calibration goes with --policy"),
        (["--report", "/dev/null"], 4, "/dev/null: it is a device, not a file"),
    ],
)
def test_what_cannot_be_written_is_refused_before_a_head_is_changed(
    arguments: list[str], code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, heads = tmp_path / "rows.jsonl", tmp_path / "heads"
    rows.write_text(Path(SPAM).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "questions.json").write_text(json.dumps(QUESTIONS))
    (tmp_path / "broken.toml").write_text("[")
    named = [one.format(tmp=tmp_path) for one in arguments]

    assert main(["fit", str(rows), "--out", str(heads), *named]) == code

    assert words.format(tmp=tmp_path) in capsys.readouterr().err
    assert not heads.exists()


def test_another_risk_than_the_policys_is_refused_before_a_head_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, heads = tmp_path / "policy.toml", tmp_path / "heads"
    policy.write_text(
        policy_text(PolicyFile("2026-12-01T00:00:00Z", 0.2, 0.1, "labels", False, {}, ()))
        + "engines = {}\nfloors = []\n"
    )

    assert main(["fit", SPAM, "--out", str(heads), "--policy", str(policy)]) == 2

    assert "give --risk 0.2 or another --policy" in capsys.readouterr().err
    assert not heads.exists()


def test_a_folder_with_something_that_is_no_head_has_no_promise(
    vectors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, policy = tmp_path / "heads", tmp_path / "policy.toml"
    shutil.copytree(vectors, folder)
    (folder / "other.npz").write_text("no head")

    assert main(["fit", SPAM, "--out", str(folder), "--policy", str(policy)]) == 4

    assert "the folder cannot be served: other.npz is not a head" in capsys.readouterr().err
    assert not policy.exists()


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 101])
def test_an_engine_that_no_configuration_can_name_is_refused(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["fit", SPAM, f"--engine={name}"])

    assert refused.value.code == 2
    assert "cannot be the name of an engine" in capsys.readouterr().err
