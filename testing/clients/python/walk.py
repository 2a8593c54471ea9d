"""What a user of the Python client does with Jobs, step by step, on the cluster of KUBECONFIG.

One line for each step. The first thing that is not as it is on Kubernetes ends it with a
traceback and the exit code 1.
"""

import json
import logging
import threading

from kubernetes import client, config, dynamic, informer, watch
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from kubernetes.stream import stream

NAMESPACE = "walk-python"
# Nothing here takes that long; whatever does is stuck.
PATIENCE_SECONDS = 60

config.load_kube_config()
core, batch = client.CoreV1Api(), client.BatchV1Api()
coordination = client.CoordinationV1Api()


def main():
    for step in [
        a_namespace_comes_with_its_service_account,
        a_config_map_goes_there_and_back,
        an_object_that_is_wrong_is_refused_with_its_field,
        a_job_runs_to_its_end_under_a_watch,
        its_pods_have_logs,
        programs_run_beside_a_container,
        each_kind_of_patch_does_what_it_does,
        appliers_conflict_and_one_can_insist,
        lists_can_be_selected_and_come_in_pages,
        jobs_go_by_each_propagation_policy,
        two_candidates_hand_over_a_lease,
        the_namespace_goes_with_what_is_in_it,
    ]:
        step()
        print(f"python: {step.__name__.replace('_', ' ')}", flush=True)


def a_namespace_comes_with_its_service_account():
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    for event in follow(core.list_namespaced_service_account, "metadata.name=default", "0"):
        if event["type"] == "ADDED":
            return


def a_config_map_goes_there_and_back():
    # Names, values and bytes that a careless reader would spoil.
    data = {"empty": "", "text": "Grüße\n\tin \"quotes\" \u2028", "number": "0012"}
    wanted = {"metadata": {"name": "settings"}, "data": data, "binaryData": {"bytes": "AP9/gA=="}}
    created = core.create_namespaced_config_map(NAMESPACE, wanted)
    read = core.read_namespaced_config_map("settings", NAMESPACE)
    same(read, created)
    same(read.data, data)
    same(read.binary_data, {"bytes": "AP9/gA=="})
    error = refused(409, core.create_namespaced_config_map, NAMESPACE, wanted)
    same(error["reason"], "AlreadyExists")
    read.data["more"] = "x"
    core.replace_namespaced_config_map("settings", NAMESPACE, read)
    error = refused(409, core.replace_namespaced_config_map, "settings", NAMESPACE, read)
    same(error["reason"], "Conflict")
    core.delete_namespaced_config_map("settings", NAMESPACE)
    error = refused(404, core.read_namespaced_config_map, "settings", NAMESPACE)
    same(error["details"]["name"], "settings")


def an_object_that_is_wrong_is_refused_with_its_field():
    wrong = job("wrong", completions=-1)
    wrong["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    error = refused(422, batch.create_namespaced_job, NAMESPACE, wrong)
    same(error["reason"], "Invalid")
    same((error["details"]["kind"], error["details"]["group"]), ("Job", "batch"))
    fields = {cause["field"]: cause["reason"] for cause in error["details"]["causes"]}
    same(fields["spec.completions"], "FieldValueInvalid")
    same(fields["spec.template.spec.restartPolicy"], "FieldValueRequired")
    # The client itself refuses fields that its types do not have; the dynamic one sends them.
    misspelt = manifest(job("wrong"))
    misspelt["spec"]["paralelism"] = 1
    strict = [("fieldValidation", "Strict")]
    error = refused(400, jobs().create, misspelt, NAMESPACE, query_params=strict)
    assert 'unknown field "spec.paralelism"' in error["message"], error


def a_job_runs_to_its_end_under_a_watch():
    # The typed form, by which the client names fields its own way.
    container = client.V1Container(
        name="main", image="busybox", command=["sh", "-c", "echo I am $JOB_COMPLETION_INDEX"]
    )
    template = client.V1PodTemplateSpec(
        spec=client.V1PodSpec(restart_policy="Never", containers=[container])
    )
    spec = client.V1JobSpec(
        completions=3, parallelism=2, completion_mode="Indexed", template=template
    )
    created = batch.create_namespaced_job(
        NAMESPACE, client.V1Job(metadata=client.V1ObjectMeta(name="work"), spec=spec)
    )
    same(created.spec.backoff_limit, 6)
    version, types = created.metadata.resource_version, []
    for event in follow(batch.list_namespaced_job, "metadata.name=work", version):
        types.append(event["type"])
        assert int(event["object"].metadata.resource_version) > int(version), event
        if any(is_complete(c) for c in event["object"].status.conditions or []):
            break
    same(set(types), {"MODIFIED"})
    done = batch.read_namespaced_job_status("work", NAMESPACE)
    same((done.status.succeeded, done.status.completed_indexes), (3, "0-2"))
    assert done.status.completion_time >= done.status.start_time, done.status


def its_pods_have_logs():
    pods = core.list_namespaced_pod(NAMESPACE, label_selector="job-name=work").items
    same(len(pods), 3)
    for pod in pods:
        index = pod.metadata.labels["batch.kubernetes.io/job-completion-index"]
        same(core.read_namespaced_pod_log(pod.metadata.name, NAMESPACE), f"I am {index}\n")
    follower = watch.Watch()
    lines = follower.stream(core.read_namespaced_pod_log, pods[0].metadata.name, NAMESPACE)
    same(len(list(lines)), 1)


def programs_run_beside_a_container():
    container = {"name": "main", "image": "unused", "command": ["sleep", "1000"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    core.create_namespaced_pod(NAMESPACE, {"metadata": {"name": "visited"}, "spec": spec})
    for event in follow(core.list_namespaced_pod, "metadata.name=visited", "0"):
        if event["object"].status.phase == "Running":
            break

    def run(script, **more):
        more = {"stdin": False, "stdout": True, "stderr": True, "tty": False, **more}
        call = core.connect_get_namespaced_pod_exec
        return stream(call, "visited", NAMESPACE, command=["sh", "-c", script], **more)

    same(run("echo out; echo err >&2", stderr=False), "out\n")
    visit = run("while read l; do echo got $l; done", stdin=True, _preload_content=False)
    visit.write_stdin("one\ntwo\n")
    same([visit.readline_stdout(PATIENCE_SECONDS) for _ in range(2)], ["got one", "got two"])
    assert visit.is_open()
    visit.close()
    visit = run("echo last >&2; exit 7", _preload_content=False)
    visit.run_forever(PATIENCE_SECONDS)
    same((visit.read_stderr(), visit.returncode), ("last\n", 7))
    visit = run("stty size; exec cat", stdin=True, tty=True, _preload_content=False)
    assert visit.readline_stdout(PATIENCE_SECONDS), "a size"
    visit.close()
    try:
        run("true", container="none")
    except client.ApiException as error:
        # The client tells refusals of this kind in words only.
        assert "container none is not valid for pod visited" in error.reason, error
    else:
        raise AssertionError("there is no such container")
    core.delete_namespaced_pod("visited", NAMESPACE)


def each_kind_of_patch_does_what_it_does():
    batch.create_namespaced_job(NAMESPACE, job("patched", suspend=True))
    finalizers = lambda *names: {"metadata": {"finalizers": list(names)}}
    # A list replaces the whole list, but for a strategic merge, which adds to this one.
    patched = patch("merge-patch", finalizers("example.com/a"))
    same(patched.metadata.finalizers, ["example.com/a"])
    patched = patch("strategic-merge-patch", finalizers("example.com/b"))
    same(sorted(patched.metadata.finalizers), ["example.com/a", "example.com/b"])
    operations = [
        {"op": "test", "path": "/spec/suspend", "value": True},
        {"op": "replace", "path": "/spec/parallelism", "value": 2},
    ]
    same(patch("json-patch", operations).spec.parallelism, 2)
    operations[0]["value"] = False
    error = refused(422, patch, "json-patch", operations)
    same(error["reason"], "Invalid")
    # Without a word about the kind the client sends JSON patches for lists.
    patched = batch.patch_namespaced_job(
        "patched", NAMESPACE, [{"op": "remove", "path": "/metadata/finalizers"}]
    )
    same(patched.metadata.finalizers, None)
    error = refused(409, patch, "merge-patch", {"metadata": {"resourceVersion": "1"}})
    same(error["reason"], "Conflict")


def appliers_conflict_and_one_can_insist():
    applied = lambda manager, body, **more: jobs().server_side_apply(
        body=body, name="applied", namespace=NAMESPACE, field_manager=manager, **more
    )
    mine = manifest(job("applied", suspend=True, parallelism=1))
    mine["metadata"]["labels"] = {"owner": "one"}
    applied("one", mine)
    theirs = manifest({"metadata": {"name": "applied"}, "spec": {"parallelism": 2}})
    try:
        applied("two", theirs)
        raise AssertionError("there is no conflict")
    except dynamic.exceptions.ConflictError as conflict:
        cause = json.loads(conflict.body)["details"]["causes"][0]
        same((cause["reason"], cause["field"]), ("FieldManagerConflict", ".spec.parallelism"))
    result = applied("two", theirs, force_conflicts=True)
    same(result.spec.parallelism, 2)
    owners = {entry.manager: entry.fieldsV1 for entry in result.metadata.managedFields}
    assert "f:parallelism" in owners["two"]["f:spec"].to_dict(), owners
    assert "f:parallelism" not in owners["one"]["f:spec"].to_dict(), owners
    # What is no longer applied goes.
    del mine["metadata"]["labels"], mine["spec"]["parallelism"]
    result = applied("one", mine)
    same(result.spec.parallelism, 2)
    same(result.metadata.labels.owner if result.metadata.labels else None, None)


def lists_can_be_selected_and_come_in_pages():
    for number in range(5):
        wanted = {"metadata": {"name": f"page-{number}", "labels": {"page": str(number)}}}
        core.create_namespaced_config_map(NAMESPACE, wanted)
    names = lambda **options: [
        item.metadata.name for item in core.list_namespaced_config_map(NAMESPACE, **options).items
    ]
    same(names(label_selector="page in (1,3)"), ["page-1", "page-3"])
    same(names(label_selector="page,page notin (1,3)"), ["page-0", "page-2", "page-4"])
    same(names(field_selector="metadata.name=page-2"), ["page-2"])
    seen, token = [], None
    while True:
        page = core.list_namespaced_config_map(
            NAMESPACE, label_selector="page", limit=2, _continue=token
        )
        seen.append([item.metadata.name for item in page.items])
        token = page.metadata._continue
        if not token:
            break
    same(seen, [["page-0", "page-1"], ["page-2", "page-3"], ["page-4"]])
    done = core.list_namespaced_pod(NAMESPACE, field_selector="status.phase=Succeeded")
    same(len(done.items), 3)
    error = refused(400, core.list_namespaced_pod, NAMESPACE, field_selector="spec.nothing=x")
    same(error["reason"], "BadRequest")
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="page")
    same(names(label_selector="page"), [])


def jobs_go_by_each_propagation_policy():
    gone, known = threading.Semaphore(0), threading.Semaphore(0)
    pods = informer.SharedInformer(
        core.list_namespaced_pod, NAMESPACE, label_selector="job-name=doomed"
    )
    pods.add_event_handler(informer.ADDED, lambda pod: known.release())
    pods.add_event_handler(informer.DELETED, lambda pod: gone.release())
    errors = []
    pods.add_event_handler(informer.ERROR, errors.append)
    pods.start()
    for policy in ["Background", "Foreground", "Orphan"]:
        sleeper = job("doomed", script="exec sleep 1000")
        created = batch.create_namespaced_job(NAMESPACE, sleeper)
        for _ in range(2):
            assert known.acquire(timeout=PATIENCE_SECONDS), f"{policy}: no Pods"
        # Options are in the body or in the query, and if there is a body nobody reads the query.
        options = {"propagationPolicy": policy, "preconditions": {"uid": "another"}}
        refused(409, batch.delete_namespaced_job, "doomed", NAMESPACE, body=options)
        options["preconditions"]["uid"] = created.metadata.uid
        if policy == "Background":
            batch.delete_namespaced_job("doomed", NAMESPACE, propagation_policy=policy)
        else:
            batch.delete_namespaced_job("doomed", NAMESPACE, body=options)
        version = created.metadata.resource_version
        for event in follow(batch.list_namespaced_job, "metadata.name=doomed", version):
            if event["type"] == "DELETED":
                break
        if policy == "Orphan":
            left = core.list_namespaced_pod(NAMESPACE, label_selector="job-name=doomed").items
            same([pod.metadata.owner_references for pod in left], [None, None])
            core.delete_collection_namespaced_pod(NAMESPACE, label_selector="job-name=doomed")
        if policy == "Foreground":
            left = core.list_namespaced_pod(NAMESPACE, label_selector="job-name=doomed").items
            same(left, [])
        for _ in range(2):
            assert gone.acquire(timeout=PATIENCE_SECONDS), f"{policy}: Pods stay"
    same(errors, [])
    # The informer ends when its watch does, which may be much later: its thread is a daemon.


def two_candidates_hand_over_a_lease():
    leads = {name: threading.Event() for name in ["first", "second"]}
    leave, left = threading.Event(), threading.Event()

    class Leaves(Exception):
        """How a leader of this client goes: its work fails."""

    def work(name):
        leads[name].set()
        if name == "first":
            leave.wait(PATIENCE_SECONDS)
            raise Leaves

    def candidate(name):
        settings = electionconfig.Config(
            LeaseLock("leader", NAMESPACE, name),
            # The next leader waits that long: this client gives nothing back.
            lease_duration=5,
            renew_deadline=4,
            retry_period=1,
            onstarted_leading=lambda: work(name),
            onstopped_leading=left.set,
        )
        election = leaderelection.LeaderElection(settings)
        threading.Thread(target=election.run, daemon=True).start()

    holder = lambda: coordination.read_namespaced_lease("leader", NAMESPACE).spec.holder_identity
    # That a leader leaves is on purpose, and need not be shown with its traceback.
    logging.getLogger("leaderelection").disabled = True
    candidate("first")
    assert leads["first"].wait(PATIENCE_SECONDS), "nobody leads"
    candidate("second")
    same(holder(), "first")
    # It renews what it holds, and the other one leaves it alone.
    lease = coordination.read_namespaced_lease("leader", NAMESPACE)
    version = lease.metadata.resource_version
    for event in follow(coordination.list_namespaced_lease, "metadata.name=leader", version):
        same(event["object"].spec.holder_identity, "first")
        assert event["object"].spec.renew_time > lease.spec.renew_time, event
        break
    same(leads["second"].is_set(), False)
    leave.set()
    assert left.wait(PATIENCE_SECONDS), "it does not stop"
    assert leads["second"].wait(PATIENCE_SECONDS), "nobody takes over"
    same(holder(), "second")


def the_namespace_goes_with_what_is_in_it():
    patch("merge-patch", {"metadata": {"finalizers": None}})
    version = core.read_namespace(NAMESPACE).metadata.resource_version
    core.delete_namespace(NAMESPACE)
    wanted = f"metadata.name={NAMESPACE}"
    for event in follow(core.list_namespace, wanted, version, namespaced=False):
        if event["type"] == "DELETED":
            break
    same(batch.list_namespaced_job(NAMESPACE).items, [])


def job(name, script="true", completions=2, parallelism=2, suspend=False):
    """A Job as a manifest has it."""
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    spec = {
        "completions": completions,
        "parallelism": parallelism,
        "completionMode": "Indexed",
        "suspend": suspend,
        "template": {"spec": pod},
    }
    return {"metadata": {"name": name}, "spec": spec}


def manifest(wanted):
    return {"apiVersion": "batch/v1", "kind": "Job"} | wanted


def jobs():
    """Jobs as the dynamic client finds them by discovery."""
    found = dynamic.DynamicClient(client.ApiClient()).resources
    return found.get(api_version="batch/v1", kind="Job")


def patch(kind, body):
    kind = f"application/{kind}+json"
    return batch.patch_namespaced_job("patched", NAMESPACE, body, _content_type=kind)


def follow(list_function, field_selector, version, namespaced=True):
    """What happens after a version; whoever has not left before the watch ends has waited in vain."""
    where = [NAMESPACE] if namespaced else []
    yield from watch.Watch().stream(
        list_function,
        *where,
        field_selector=field_selector,
        resource_version=version,
        timeout_seconds=PATIENCE_SECONDS,
    )
    raise AssertionError(f"{field_selector}: it did not happen")


def is_complete(condition):
    return condition.type == "Complete" and condition.status == "True"


def refused(code, call, *arguments, **options):
    """The Status that a call is refused with."""
    try:
        answer = call(*arguments, **options)
    except client.ApiException as error:
        same(error.status, code)
        status = json.loads(error.body)
        same((status["kind"], status["code"]), ("Status", code))
        return status
    raise AssertionError(f"it is not refused: {answer}")


def same(got, wanted):
    assert got == wanted, f"{got!r} is not {wanted!r}"


main()
