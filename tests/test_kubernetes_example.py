"""The recipes for Kubernetes: their command lines are ones that `ramify` takes, and their parts fit together."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from benchmarks.batch.cluster import requests
from benchmarks.cli.app import app

FOLDER = Path(__file__).parent.parent / "examples" / "kubernetes"
PODS = {
    "job.yaml": ("spec.template.spec",),
    "rayjob.yaml": (
        "spec.rayClusterSpec.headGroupSpec.template.spec",
        "spec.rayClusterSpec.workerGroupSpecs.0.template.spec",
    ),
}


def recipe(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value[int(key) if isinstance(value, list) else key]
    return value


def parsed(argv: list[str]) -> dict[str, Any]:
    """What `ramify` makes of a command line, without running it."""
    assert argv[:2] == ["ramify", "bench"]
    command = typer.main.get_group(app).commands[argv[2]]
    return command.make_context("ramify bench", argv[3:]).params


def test_the_command_of_the_cluster_is_one_that_ramify_takes() -> None:
    given = parsed(shlex.split(recipe("rayjob.yaml")["spec"]["entrypoint"]))
    assert (given["executor"], str(given["out"]), given["source"]) == ("ray", "/results/nightly", "/suite")
    assert requests.read(given["ray_resources"]) == {"CPU": 2.0, "memory": 4e9}


def test_the_command_of_the_pod_is_one_that_ramify_takes() -> None:
    box = at(recipe("job.yaml"), "spec.template.spec.containers.0")
    given = parsed([*box["command"], *box["args"]])
    assert (given["executor"], given["at_once"], given["total_usd"]) == ("local", 4, 50.0)


def test_a_command_line_that_ramify_does_not_take_is_noticed_here() -> None:
    with pytest.raises(Exception, match="--executers"):
        parsed(shlex.split("ramify bench run /suite --out /results --executers ray"))


@pytest.mark.parametrize(("name", "place"), [(name, place) for name, places in PODS.items() for place in places])
def test_pods_mount_what_they_use_and_are_not_privileged(name: str, place: str) -> None:
    pod = at(recipe(name), place)
    (box,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in box["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    places = [variable["value"] for variable in box.get("env", ())]
    assert all(any(value.startswith(mount) for mount in mounts.values()) for value in places)
    allowed = box.get("securityContext", {})
    assert "privileged" not in allowed
    assert allowed.get("capabilities", {}).get("drop", ["ALL"]) == ["ALL"]
    assert (allowed.get("procMount") == "Unmasked") == (pod.get("hostUsers") is False)


def test_instances_fit_into_the_workers_and_none_into_the_head() -> None:
    made = recipe("rayjob.yaml")
    wanted = requests.read(parsed(shlex.split(made["spec"]["entrypoint"]))["ray_resources"])
    (group,) = at(made, "spec.rayClusterSpec.workerGroupSpecs")
    asked = at(group, "template.spec.containers.0.resources.requests")
    machine = {"CPU": float(asked["cpu"]), "memory": 2**30 * float(asked["memory"].removesuffix("Gi"))}
    assert requests.capacity([machine] * group["replicas"], wanted) == 16
    assert (
        requests.capacity(
            [{"CPU": float(at(made, "spec.rayClusterSpec.headGroupSpec.rayStartParams.num-cpus"))}], wanted
        )
        == 0
    )


def test_keys_come_from_the_secret_that_is_made_for_them_and_are_written_nowhere() -> None:
    told = (FOLDER / "README.md").read_text()
    for name, places in PODS.items():
        boxes = [box for place in places for box in at(recipe(name), place)["containers"]]
        named = [source["secretRef"]["name"] for box in boxes for source in box.get("envFrom", ())]
        assert named == ["ramify-model"]
        assert f"secret generic {named[0]}" in told
        assert not any("KEY" in variable["name"] for box in boxes for variable in box.get("env", ()))
        assert {box["image"] for box in boxes} == {"registry.example.org/ramify-batch:1"}
        assert f"kubectl apply -f {name}" in told
