"""Python files that a scenario names: one module for each text, picklable, importable where the file is not."""

import pickle
import subprocess
import sys
import traceback

import pytest
from pydantic import ValidationError

from fedactors import user_code
from fedactors.options import Options
from fedactors.user_code import Reference, parse


class Holder(Options):
    factory: Reference


def written(folder, text, name="nets.py"):
    file = folder / name
    file.write_text(text)
    return file


def test_a_file_is_found_beside_the_scenario_and_loaded(tmp_path):
    written(tmp_path, "class Net:\n    class Inner:\n        width = 3\n")
    holder = Holder.model_validate({"factory": "nets.py:Net.Inner"}, context={"folder": tmp_path})
    assert holder.factory.load().width == 3
    assert holder.model_dump(mode="json") == {"factory": "nets.py:Net.Inner"}


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    written(tmp_path, "\ufeffWIDTH = 3\n")
    marked = parse("nets.py:WIDTH", tmp_path)
    assert marked.load() == 3
    written(tmp_path, "WIDTH = 3\n")
    assert parse("nets.py:WIDTH", tmp_path) == marked


def test_another_text_is_another_module(tmp_path):
    written(tmp_path, "WIDTH = 1\n")
    first = parse("nets.py:WIDTH", tmp_path)
    written(tmp_path, "WIDTH = 2\n")
    second = parse("nets.py:WIDTH", tmp_path)
    assert (first.load(), second.load()) == (1, 2)
    assert first != second


def test_a_dotted_module_is_imported_as_it_is(tmp_path):
    assert parse("collections:OrderedDict.fromkeys", tmp_path).load().__name__ == "fromkeys"


def test_objects_of_the_users_classes_are_unpickled_where_the_file_is_not(tmp_path):
    text = "import helper\n\nclass Net:\n    def __init__(self, width):\n        self.width = width\n"
    file = written(tmp_path, text)
    written(tmp_path, "", "helper.py")
    net = parse("nets.py:Net", tmp_path).load()(7)
    packed = pickle.dumps((user_code.sources(), pickle.dumps(net)))
    file.unlink()
    code = (
        "import pickle, sys; from fedactors import user_code\n"
        "sources, packed = pickle.loads(sys.stdin.buffer.read())\n"
        "user_code.adopt(sources); print(pickle.loads(packed).width)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True, check=False)
    assert done.stdout.strip() == b"7", done.stderr.decode()


def test_a_traceback_shows_the_users_lines_though_the_file_is_gone(tmp_path):
    file = written(tmp_path, "def broken():\n    return 1 / 0  # mine\n")
    broken = parse("nets.py:broken", tmp_path).load()
    file.unlink()
    with pytest.raises(ZeroDivisionError) as raised:
        broken()
    assert "return 1 / 0  # mine" in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nets.py", "must name something in Python code"),
        ("nets.py:", "must name something in Python code"),
        ("nets.py:a b", "must name something in Python code"),
        ("gone.py:Net", "no file"),
        ("a/b:Net", "neither a file nor a module"),
        ("folder.py:Net", "not a file"),
        ("latin.py:Net", "not UTF-8 text: byte 1"),
        (3, "must be a text such as"),
    ],
)
def test_what_cannot_be_used_is_told(text, said, tmp_path):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "latin.py").write_bytes(b"#\xe9\n")
    with pytest.raises(ValidationError, match=said):
        Holder.model_validate({"factory": text}, context={"folder": tmp_path})


def test_nothing_is_imported_before_it_is_asked_for(tmp_path):
    written(tmp_path, "raise RuntimeError('on import')\n")
    found = parse("nets.py:Net", tmp_path)
    with pytest.raises(RuntimeError, match="on import"):
        found.load()


def test_the_schema_calls_it_a_text():
    assert Holder.model_json_schema()["properties"]["factory"]["type"] == "string"
