"""What the YAML files declare is what the code does, and what a builder reads is there in both languages."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from development.daemon import PluginFailure, ToolAnswer
from development.places import PLUGIN_PYTHON, PROJECT, UV
from dify.nodes import NODES
from dify.opening import Selected, open_engine
from dify.parameters import Parameters
from dify.settings import read_settings, selected_model
from memory.errors import MemoryFault
from tests.conftest import Json, Nodes

MANIFEST = "manifest.yaml"
PROVIDER = "provider/customer_memory.yaml"
TOOLS = [f"tools/{name}.yaml" for name in NODES]
LANGUAGES = {"en_US", "zh_Hans"}
IDENTITIES = {"customer_id", "conversation_id", "case_id"}


def _yaml(path: str) -> Json:
    loaded = yaml.safe_load((PROJECT / path).read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def _folder(name: str) -> list[str]:
    return sorted(path.relative_to(PROJECT).as_posix() for path in (PROJECT / name).glob("*.yaml"))


_ENDPOINTS = {path: _yaml(path) for path in _folder("endpoints")}
GROUPS = [path for path, loaded in _ENDPOINTS.items() if "settings" in loaded]
DECLARATIONS = [
    MANIFEST,
    PROVIDER,
    *TOOLS,
    *(p for p, y in _ENDPOINTS.items() if p in GROUPS or "extra" in y),
]


# --- as the SDK sees them -----------------------------------------------------------------------

_REGISTER = """
import json, dify_plugin
from dify_plugin.core.plugin_registration import PluginRegistration
from dify_plugin.entities.tool import ToolLabelEnum
r = PluginRegistration(dify_plugin.DifyPluginEnv())
tools = {p: sorted(t) for p, (_, _, t) in r.tools_mapping.items()}
rules = [[rule.rule, sorted(rule.methods or [])] for rule in r.endpoints.iter_rules()]
files, tags = [f.filename for f in r.files], [t.value for t in ToolLabelEnum]
print("REGISTERED" + json.dumps({"tools": tools, "rules": rules, "assets": files, "tags": tags}))
"""


@pytest.fixture(scope="module")
def registered() -> Json:
    """What the SDK makes of the plugin, loaded in a process of its own."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [PLUGIN_PYTHON, "-c", _REGISTER],
        cwd=PROJECT,
        env={"INSTALL_METHOD": "local", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    answer: Json = json.loads(done.stdout.partition("REGISTERED")[2])
    return answer


def test_the_sdk_loads_every_tool(registered: Json) -> None:
    """The four nodes are there, under their provider, each with its class."""
    assert registered["tools"] == {"customer_memory": sorted(NODES)}


def test_the_sdk_loads_every_endpoint(registered: Json) -> None:
    """Each endpoint of the group answers under its path, with its method."""
    declared = {(y["path"], y["method"]) for p in GROUPS for y in map(_yaml, _ENDPOINTS[p]["endpoints"])}
    loaded = {(rule, method) for rule, methods in registered["rules"] for method in methods}
    assert declared <= loaded


def test_every_icon_is_an_asset(registered: Json) -> None:
    """What the manifest and the provider show is in the package."""
    identity = _yaml(PROVIDER)["identity"]
    manifest = _yaml(MANIFEST)
    icons = {manifest["icon"], manifest["icon_dark"], identity["icon"], identity["icon_dark"]}
    assert icons <= set(registered["assets"])


def test_every_yaml_file_is_used() -> None:
    """No tool or endpoint is declared that the manifest does not lead to."""
    manifest = _yaml(MANIFEST)
    assert manifest["plugins"]["tools"] == [PROVIDER] == _folder("provider")
    assert sorted(_yaml(PROVIDER)["tools"]) == sorted(TOOLS) == _folder("tools")
    assert sorted(manifest["plugins"].get("endpoints", [])) == GROUPS
    used = {path for group in GROUPS for path in _ENDPOINTS[group]["endpoints"]}
    assert used | set(GROUPS) == {path for path in _ENDPOINTS if path in DECLARATIONS}


@pytest.mark.parametrize("path", DECLARATIONS)
def test_every_source_named_exists(path: str) -> None:
    """Each declaration leads to its Python file."""
    source = _yaml(path).get("extra", {}).get("python", {}).get("source")
    assert (PROJECT / source).is_file() if source else path in {MANIFEST, *GROUPS}


# --- what a builder reads -----------------------------------------------------------------------


def _texts(value: object, path: str = "") -> Iterator[tuple[str, Mapping[str, object]]]:
    """Every place of a declaration where there is text in several languages."""
    if isinstance(value, Mapping):
        if any(re.fullmatch(r"[a-z]{2}[_-][A-Za-z]{2,4}", str(key)) for key in value):
            yield path, value
        for key, inner in value.items():
            yield from _texts(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{path}/{number}")


@pytest.mark.parametrize("path", DECLARATIONS)
def test_a_builder_reads_it_in_both_languages(path: str) -> None:
    """English and Simplified Chinese, and no key that the SDK would drop in silence."""
    for place, text in _texts(_yaml(path)):
        assert set(text) == LANGUAGES, place
        assert all(isinstance(words, str) and words.strip() for words in text.values()), place
        assert not re.search(r"[\u3000-\u9fff]", str(text["en_US"])), place


def test_chinese_texts_are_chinese() -> None:
    """A help text is translated, not copied."""
    for path in DECLARATIONS:
        for place, text in _texts(_yaml(path)):
            if place.endswith(("/help", "/human_description", "/human")):
                assert re.search(r"[\u4e00-\u9fff]", str(text["zh_Hans"])), f"{path}{place}"


def _places(path: str) -> set[str]:
    return {place for place, _ in _texts(_yaml(path))}


@pytest.mark.parametrize("path", TOOLS)
def test_every_node_and_field_is_explained(path: str) -> None:
    """A label and a description for the node, for each parameter, and a label for each option."""
    places, tool = _places(path), _yaml(path)
    wanted = {"/identity/label", "/description/human"}
    for number, parameter in enumerate(tool["parameters"]):
        wanted |= {f"/parameters/{number}/label", f"/parameters/{number}/human_description"}
        wanted |= {
            f"/parameters/{number}/options/{i}/label" for i, _ in enumerate(parameter.get("options", []))
        }
        assert parameter["llm_description"].strip()
    assert wanted <= places
    assert tool["description"]["llm"].strip()


def _fields(path: str) -> list[Json]:
    """The fields of a form: the provider's are named by their keys, an endpoint group's by their names."""
    loaded = _yaml(path)
    if "settings" in loaded:
        return list(loaded["settings"])
    return [{"name": name, **field} for name, field in loaded["credentials_for_provider"].items()]


@pytest.mark.parametrize("path", [PROVIDER, *GROUPS])
def test_every_field_of_a_form_is_explained(path: str) -> None:
    """A label and a help for each, a placeholder wherever something is typed."""
    for field in _fields(path):
        assert set(field["label"]) == set(field["help"]) == LANGUAGES, field["name"]
        assert all(set(option["label"]) == LANGUAGES for option in field.get("options", []))
        assert field["type"] in {"secret-input", "text-input", "select", "boolean", "model-selector"}


# --- the manifest -------------------------------------------------------------------------------


def test_the_manifest_keeps_to_the_marketplaces_rules() -> None:
    """Names, version, date, platform and permissions as Dify wants them."""
    manifest = _yaml(MANIFEST)
    assert re.fullmatch(r"[a-z0-9_-]{1,128}", manifest["name"])
    assert re.fullmatch(r"[a-z0-9_-]{1,64}", manifest["author"])
    assert not re.search("dify|langgenius", manifest["author"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(manifest["created_at"]))
    assert manifest["meta"]["runner"] == {"language": "python", "version": "3.12", "entrypoint": "main"}
    assert set(manifest["meta"]["arch"]) == {"amd64", "arm64"}
    assert manifest["meta"]["minimum_dify_version"] == "1.9.0"
    assert isinstance(manifest["resource"]["memory"], int)


def test_the_author_is_the_same_everywhere() -> None:
    """Manifest, provider and tools name one author."""
    authors = {_yaml(MANIFEST)["author"], _yaml(PROVIDER)["identity"]["author"]}
    assert authors | {_yaml(tool)["identity"]["author"] for tool in TOOLS} == {"customer-memory"}


def test_a_tool_has_the_name_of_its_file() -> None:
    """What the code calls a node is what the builder's flow stores."""
    assert [_yaml(f"tools/{name}.yaml")["identity"]["name"] for name in NODES] == list(NODES)


def test_tags_are_some_the_sdk_knows(registered: Json) -> None:
    """`agent` and `trigger` would crash the SDK at start."""
    for tags in (_yaml(MANIFEST)["tags"], _yaml(PROVIDER)["identity"]["tags"]):
        assert tags
        assert set(tags) <= set(registered["tags"]) - {"agent", "trigger"}


def test_no_permission_is_asked_for_without_use() -> None:
    """Reviewers compare with the code: storage, other models and other apps stay off."""
    permission = _yaml(MANIFEST)["resource"]["permission"]
    assert set(permission) <= {"tool", "model", "endpoint"}
    on = {name for name, value in permission["model"].items() if value}
    assert {"enabled", "text_embedding"} <= on <= {"enabled", "text_embedding", "llm"}
    code = "".join(path.read_text(encoding="utf-8") for path in (PROJECT / "dify").glob("*.py"))
    assert ("model.llm" in code) == ("llm" in on)
    assert permission.get("endpoint", {}).get("enabled", False) == bool(GROUPS)
    assert "session.storage" not in code


# --- parameters, outputs and fields -------------------------------------------------------------


class _Recording(Mapping[str, Any]):
    """Values that note which names were read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("parameters are read by name")

    def __len__(self) -> int:
        return len(self._values)


CALLS: dict[str, list[Json]] = {
    "remember": [{"customer_id": "anna", "content": "Likes tea"}],
    "recall": [{"customer_id": "anna", "query": "tea"}],
    "forget": [{"customer_id": "anna", "query": "tea"}],
    "link_conversation": [{"customer_id": "anna", "conversation_id": "c"}],
}


@pytest.mark.parametrize("name", NODES)
def test_a_node_reads_what_it_declares(name: str, credentials: Json) -> None:
    """Each declared parameter is read, and none that a builder cannot set."""
    read = {"embedding_model", "llm"} if NODES[name].selects_models else set()
    for values in CALLS[name]:
        recording = _Recording(values)
        engine = open_engine(credentials, Selected(), None)
        NODES[name].run(engine, Parameters(recording), None)
        read |= recording.read
    assert read == {parameter["name"] for parameter in _yaml(f"tools/{name}.yaml")["parameters"]}


@pytest.mark.parametrize("path", TOOLS)
def test_who_the_customer_is_never_comes_from_a_model(path: str) -> None:
    """Identities are settings of the node; what a model fills in is text to remember or to look for."""
    parameters = {p["name"]: p for p in _yaml(path)["parameters"]}
    assert set(parameters) >= IDENTITIES
    assert {parameters[name]["form"] for name in IDENTITIES} == {"form"}
    by_model = {name for name, p in parameters.items() if p["form"] == "llm"}
    assert by_model <= {"content", "query", "memory_ids"}


@pytest.mark.parametrize("path", TOOLS)
def test_no_parameter_but_the_content_is_required(path: str) -> None:
    """A builder may leave a setting alone, and a default is among the options there are."""
    for parameter in _yaml(path)["parameters"]:
        assert parameter["required"] is (parameter["name"] == "content")
        options = [option["value"] for option in parameter.get("options", [])]
        assert parameter["type"] != "select" or options
        assert "default" not in parameter or not options or parameter["default"] in options


def _is_of(kind: str, value: object) -> bool:
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "number": (int, float),
        "boolean": (bool,),
        "array": (list,),
        "object": (dict,),
    }
    return isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _answers(nodes: Nodes) -> Iterator[tuple[str, ToolAnswer]]:
    """Each node's answer, with and without something to say, through the real process."""
    yield "recall", nodes.recall("tea", customer_id="anna")
    yield "forget", nodes.forget(query="tea", customer_id="anna")
    yield "remember", nodes.remember("", customer_id="anna")
    yield "remember", nodes.remember("Likes tea", customer_id="anna", conversation_id="c")
    yield "remember", nodes.remember("Likes cake", conversation_id="d")
    yield "recall", nodes.recall("tea", customer_id="anna")
    yield "recall", nodes.recall("", conversation_id="d")
    yield "link_conversation", nodes.link(customer_id="anna", conversation_id="d", case_id="case-1")
    yield "link_conversation", nodes.link(customer_id="bert", conversation_id="d", relink=True)
    yield "forget", nodes.forget(scope="everything", customer_id="anna")
    yield "forget", nodes.forget(scope="everything", action="delete", customer_id="anna")


def test_a_node_sends_what_it_declares(nodes: Nodes) -> None:
    """Every declared output is sent, with its type, by each answer, and nothing else is."""
    seen = set()
    for name, answer in _answers(nodes):
        seen.add(name)
        declared = _yaml(f"tools/{name}.yaml")["output_schema"]["properties"]
        assert set(answer.variables) == set(declared), name
        for output, schema in declared.items():
            value = answer.variables[output]
            assert _is_of(schema["type"], value), f"{name}.{output}"
            if schema["type"] == "array":
                assert all(_is_of(schema["items"]["type"], item) for item in value)
        assert re.fullmatch(r"\S.*\.", answer.text)
        assert answer.json == [{"text": answer.text, **answer.variables}]
    assert seen == set(NODES)


@pytest.mark.parametrize("path", TOOLS)
def test_every_output_is_described(path: str) -> None:
    """A builder who picks a variable sees what it is; Dify's own names are not declared again."""
    schema = _yaml(path)["output_schema"]
    assert schema["type"] == "object"
    assert all(output["description"].strip() for output in schema["properties"].values())
    assert not {"text", "json", "files"} & set(schema["properties"])


def _settings_read_by_name() -> set[str]:
    """Names that the code of the endpoints reads from its settings beside the common reader."""
    names = set()
    for path in (PROJECT / "dify").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                owner, first = ast.unparse(node.func.value), node.args[0]
                if re.fullmatch(r"(\w+\.)?settings|Parameters\(settings\)", owner):
                    names.add(ast.literal_eval(first))
    return names


def test_the_forms_fields_are_those_that_are_read() -> None:
    """Each field of the credentials and of the endpoint's settings is read, and no other name is."""
    read = _settings_read_by_name() if GROUPS else set()
    model = {"provider": "p", "model": "m"}
    services = {
        "embedding_source": "openai_compatible",
        "embedding_base_url": "http://embedding.example.com/v1",
        "llm_base_url": "http://llm.example.com/v1",
        "llm_model": "m",
    }
    for source in ({}, services):
        for chosen in ({"embedding_model": "m"}, {"embedding_model": model, "embedding_model_name": "m"}):
            recording = _Recording({"chroma_url": "http://chroma.example.com", **source, **chosen})
            read_settings(recording)
            selected_model(recording, "embedding_model")
            selected_model(recording, "llm")
            read |= recording.read
    declared = {field["name"] for path in [PROVIDER, *GROUPS] for field in _fields(path)}
    assert read == declared


def test_a_form_needs_the_address_only() -> None:
    """A credential that is required later would break what is installed; the endpoint needs a key too."""
    required = {path: {f["name"] for f in _fields(path) if f["required"]} for path in [PROVIDER, *GROUPS]}
    assert required[PROVIDER] == {"chroma_url"}
    assert all(required[group] == {"chroma_url", "api_key"} for group in GROUPS)


@pytest.mark.parametrize("path", [PROVIDER, *GROUPS])
def test_secrets_are_secret_and_defaults_are_usable(path: str) -> None:
    """Keys and tokens are hidden in the form; what it proposes is what the reader takes."""
    fields = {field["name"]: field for field in _fields(path)}
    secret = {name for name, field in fields.items() if field["type"] == "secret-input"}
    assert secret == {name for name in fields if re.search(r"token$|keys?$|secret$", name)}
    proposed = {name: field["default"] for name, field in fields.items() if "default" in field}
    assert read_settings({"chroma_url": "http://chroma.example.com", **proposed}) == read_settings(
        {"chroma_url": "http://chroma.example.com"}
    )


# --- the project's own files --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["README.md", "PRIVACY.md", "CHANGELOG.md", "LICENSE"])
def test_what_the_marketplace_wants_is_there(name: str) -> None:
    """The files exist and say something."""
    assert len((PROJECT / name).read_text(encoding="utf-8")) > 200


def test_the_manifest_names_the_privacy_policy() -> None:
    """The file the marketplace links to is the one we ship."""
    assert _yaml(MANIFEST)["privacy"] == "PRIVACY.md"


def test_the_readme_is_in_english() -> None:
    """No Chinese, Japanese or Korean outside code fences; a translation has a file of its own."""
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    outside = re.sub(r"```.*?```", "", readme, flags=re.DOTALL)
    assert re.findall(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]", outside) == []


def test_one_version_everywhere() -> None:
    """Manifest, project and changelog agree."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    version = _yaml(MANIFEST)["version"]
    assert project["project"]["version"] == version == _yaml(MANIFEST)["meta"]["version"]
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(version)}\b", changelog, re.MULTILINE)


def _exported() -> str:
    command = [
        str(UV),
        "export",
        "--quiet",
        "--frozen",
        "--no-dev",
        "--no-hashes",
        "--no-annotate",
        "--no-header",
    ]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout  # noqa: S603


def test_requirements_are_those_of_the_lock_file() -> None:
    """However the daemon installs the plugin, it gets the same versions."""
    assert (PROJECT / "requirements.txt").read_text(encoding="utf-8") == _exported()


def test_the_lock_file_is_that_of_the_project() -> None:
    """What pyproject.toml asks for is what was locked."""
    done = subprocess.run(  # noqa: S603 - our own uv
        [UV, "lock", "--check", "--offline", "--quiet"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_requirement_is_constrained_on_both_sides() -> None:
    """A version from, and a version up to; what is locked is one version."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    for requirement in project["project"]["dependencies"]:
        assert re.fullmatch(r"[a-z0-9-]+>=[\d.]+,<[\d.]+", requirement), requirement
    for line in (PROJECT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", line), line
    assert "build-system" not in project


def test_chromas_server_is_no_requirement() -> None:
    """The thin client and the server overwrite each other: only the client is installed."""
    names = {line.split("==")[0] for line in Path(PROJECT / "requirements.txt").read_text().splitlines()}
    assert "chromadb-client" in names
    assert not {"chromadb", "onnxruntime", "kubernetes", "torch"} & names


def test_the_test_process_stays_unpatched() -> None:
    """The SDK patches the standard library when imported, so nothing here may import it."""
    assert not {"dify_plugin", "gevent"} & set(sys.modules)


def test_an_unknown_parameter_is_no_error(nodes: Nodes) -> None:
    """A flow made for a newer or older version still runs: what is not known is not read."""
    assert nodes.remember("Likes tea", customer_id="anna", from_the_future="x")["stored"] == 1


def test_a_failure_of_a_node_is_told_by_its_code(nodes: Nodes, credentials: Json) -> None:
    """The fault the engine raises and the one Dify shows have one code and one message."""
    with pytest.raises(PluginFailure) as shown:
        nodes.recall("tea", customer_id="*")
    engine = open_engine(credentials, Selected(), None)
    with pytest.raises(MemoryFault) as raised:
        NODES["recall"].run(engine, Parameters({"customer_id": "*", "query": "tea"}), None)
    assert shown.value.code == raised.value.code == "id_invalid"
    assert raised.value.message in shown.value.message
