"""What a tracking server of MLflow answers, before a run logs to it.

MLflow's client keeps what a server has answered with an error such as 500 to itself: it says that there were too many
of them. So the server is asked here once, with MLflow's own credentials and headers.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from fedactors.errors import shortened

_ENDPOINT = "/api/2.0/mlflow/experiments/get-by-name"
NONE_YET = "RESOURCE_DOES_NOT_EXIST"  # there is no such experiment, or run
_MOST_READ = 20_000  # characters of an answer
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def refusal(uri: str, experiment: str) -> str:
    """Return why the server at `uri` takes no runs, in words; empty if it answers as a server of MLflow does.

    How long an answer may take, and how often the server is asked again, is what MLflow's variables
    MLFLOW_HTTP_REQUEST_TIMEOUT and MLFLOW_HTTP_REQUEST_MAX_RETRIES say.
    """
    try:
        credentials = import_module("mlflow.utils.credentials").get_default_host_creds(uri)
        ask = import_module("mlflow.utils.rest_utils").http_request
    except (ImportError, AttributeError):  # of an old MLflow, whose client tells what it can
        return ""
    try:
        answer = ask(credentials, _ENDPOINT, "GET", raise_on_status=False, params={"experiment_name": experiment})
    except Exception as error:
        return f"no answer: {_innermost(error)}"
    content = _object(answer)
    if answer.status_code == 200 and isinstance(content.get("experiment"), dict):
        return ""
    if answer.status_code == 404 and content.get("error_code") == NONE_YET:
        return ""
    elsewhere = answer.status_code in (200, 404) and "error_code" not in content
    foreign = ", which is no answer of MLflow's" if elsewhere else ""
    said = _text(answer.text[:_MOST_READ], content)
    return f"the server answered {answer.status_code} {answer.reason}{f': {said}' if said else ''}{foreign}"


def _object(answer: Any) -> dict[str, Any]:
    """Return the JSON object of an answer; empty if it holds none."""
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(body: str, content: dict[str, Any]) -> str:
    """Return what an answer says to a person: the message of an error of MLflow, else its text without tags."""
    if "error_code" in content:
        return shortened(" ".join(f"{content['error_code']}: {content.get('message', '')}".split()))
    return shortened(" ".join(_TAGS.sub(" ", body).split()))


def _innermost(error: BaseException) -> str:
    """Return what the first of several errors says, which those after it only wrap: "Connection refused"."""
    seen = [error]
    while inner := seen[-1].__cause__ or seen[-1].__context__ or getattr(seen[-1], "reason", None):
        if not isinstance(inner, BaseException) or inner in seen:
            break
        seen.append(inner)
    last = seen[-1]
    said = getattr(last, "strerror", None) or (last.args[-1] if last.args else type(last).__name__)
    return shortened(" ".join(str(said).split()))
