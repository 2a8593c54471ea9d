"""A workflow engine that lives on Jobs: a small workflow of Luigi, and its own published test.

    flow.py FOLDER

FOLDER is the source of this version of Luigi as PyPI has it. One line for each step; the first thing
that is not as it is on Kubernetes ends it with a traceback and the exit code 1.
"""

import logging
import os
import pathlib
import subprocess
import sys
import tempfile

import luigi
import pykube
from luigi.contrib.kubernetes import KubernetesJobTask

KUBECONFIG = os.environ["KUBECONFIG"]
NAMESPACE = "flow-luigi"
FOLDER = tempfile.TemporaryDirectory()
# Its failing test expects an exception that Luigi does not raise, and its test of outputs ends before
# it asks any cluster: docs/clients.md.
PUBLISHED = "contrib.kubernetes_test.TestK8STask.test_success_job"


class Step(KubernetesJobTask):
    """A Job that runs a script on this machine, where all of them find each other's files."""

    kubeconfig_path = KUBECONFIG
    kubernetes_namespace = NAMESPACE
    max_retrials = 0
    backoff_limit = 0
    poll_interval = 0.2
    pod_creation_wait_interal = 0.2
    print_pod_logs_on_exit = True

    @property
    def spec_schema(self):
        command = ["sh", "-c", f"cd {FOLDER.name} && {self.script}"]
        container = {"name": "main", "image": "busybox", "command": command}
        return {"containers": [container], "restartPolicy": "Never"}

    def output(self):
        return luigi.LocalTarget(f"{FOLDER.name}/{self.result}")


class Count(Step):
    """How many words there are in a text."""

    text = luigi.Parameter()
    name = "count"

    @property
    def script(self):
        return f"echo {self.text} | wc -w > {self.result}"

    @property
    def result(self):
        return f"{len(self.text)}.count"


class Sum(Step):
    """How many words there are in all texts."""

    name, result = "sum", "sum"
    script = "expr $(cat *.count | paste -s -d+ | sed 's/+/ + /g') > sum"

    def requires(self):
        return [Count("one"), Count("one two"), Count("one two three")]


class Broken(Step):
    """What never works."""

    name, result, script = "broken", "broken", "exit 3"


class AfterBroken(Step):
    """What is not even tried."""

    name, result, script = "after", "after", "true > after"

    def requires(self):
        return [Broken()]


def main(published):
    client = pykube.HTTPClient(pykube.KubeConfig.from_file(KUBECONFIG))
    named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    pykube.Namespace(client, named).create()
    jobs = lambda: list(pykube.Job.objects(client, namespace=NAMESPACE))

    # A failure is wanted below, and need not be shown with its traceback.
    luigi.configuration.get_config().set("core", "no_configure_logging", "true")
    logging.getLogger("luigi-interface").disabled = True
    assert luigi.build([Sum()], local_scheduler=True, workers=3)
    same(pathlib.Path(FOLDER.name, "sum").read_text(), "6\n")
    # It deletes what has succeeded.
    same(jobs(), [])
    told("four jobs run in the order of what they need, three of them at once")

    same(luigi.build([AfterBroken()], local_scheduler=True), False)
    [broken] = jobs()
    same(broken.obj["metadata"]["labels"]["spawned_by"], "luigi")
    # Luigi looks at the Pod, and may have seen it before the Job's status told of it.
    for event in pykube.Job.objects(client, namespace=NAMESPACE).watch():
        if event.object.obj["status"].get("failed") == 1:
            break
    told("a job that fails is told from one that succeeds")

    # It looks for the kubeconfig at home.
    home = pathlib.Path(FOLDER.name, "home")
    home.joinpath(".kube").mkdir(parents=True)
    home.joinpath(".kube/config").symlink_to(KUBECONFIG)
    subprocess.run(
        [sys.executable, "-m", "unittest", "--quiet", "--buffer", PUBLISHED],
        cwd=pathlib.Path(published, "test"),
        env=os.environ | {"HOME": str(home)},
        check=True,
    )
    told("its published test of a job passes")


def told(step):
    print(f"luigi: {step}", flush=True)


def same(got, wanted):
    assert got == wanted, f"{got!r} is not {wanted!r}"


if __name__ == "__main__":
    main(sys.argv[1])
