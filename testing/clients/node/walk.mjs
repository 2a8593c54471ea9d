// What a user of @kubernetes/client-node does with Jobs, step by step, on the cluster of KUBECONFIG.
//
// One line for each step. The first thing that is not as it is on Kubernetes ends it with a stack
// trace and the exit code 1.

import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import * as k8s from '@kubernetes/client-node';
import { Candidate } from './election.mjs';

const namespace = 'walk-node';
// Nothing here takes that long; whatever does is stuck.
const patienceSeconds = 60;

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const batch = config.makeApiClient(k8s.BatchV1Api);
const leases = config.makeApiClient(k8s.CoordinationV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);

const steps = {
  async 'a namespace comes with its service account'() {
    await core.createNamespace({ body: { metadata: { name: namespace } } });
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    await follow(path, 'metadata.name=default', '0', (type) => type === 'ADDED');
  },

  async 'a config map goes there and back'() {
    // Values and bytes that a careless reader would spoil.
    const data = { empty: '', text: 'Grüße\n\tin "quotes" \u2028', number: '0012' };
    const body = { metadata: { name: 'settings' }, data, binaryData: { bytes: 'AP9/gA==' } };
    const named = { namespace, name: 'settings' };
    const created = await core.createNamespacedConfigMap({ namespace, body });
    const read = await core.readNamespacedConfigMap(named);
    assert.deepEqual(read, created);
    assert.deepEqual(read.data, data);
    assert.deepEqual(read.binaryData, body.binaryData);
    let status = await refused(409, core.createNamespacedConfigMap({ namespace, body }));
    assert.equal(status.reason, 'AlreadyExists');
    read.data.more = 'x';
    await core.replaceNamespacedConfigMap({ ...named, body: read });
    status = await refused(409, core.replaceNamespacedConfigMap({ ...named, body: read }));
    assert.equal(status.reason, 'Conflict');
    await core.deleteNamespacedConfigMap(named);
    status = await refused(404, core.readNamespacedConfigMap(named));
    assert.equal(status.details.name, 'settings');
  },

  async 'an object that is wrong is refused with its field'() {
    const wrong = job('wrong', { completions: -1 });
    wrong.spec.template.spec.restartPolicy = 'Always';
    let status = await refused(422, batch.createNamespacedJob({ namespace, body: wrong }));
    assert.equal(status.reason, 'Invalid');
    assert.deepEqual([status.details.kind, status.details.group], ['Job', 'batch']);
    const causes = new Map(status.details.causes.map((cause) => [cause.field, cause.reason]));
    assert.equal(causes.get('spec.completions'), 'FieldValueInvalid');
    assert.equal(causes.get('spec.template.spec.restartPolicy'), 'FieldValueRequired');
  },

  async 'a job runs to its end under a watch'() {
    const body = job('work', { completions: 3, script: 'echo I am $JOB_COMPLETION_INDEX' });
    const created = await batch.createNamespacedJob({ namespace, body });
    assert.equal(created.spec.backoffLimit, 6);
    const path = `/apis/batch/v1/namespaces/${namespace}/jobs`;
    const version = created.metadata.resourceVersion;
    const done = await follow(path, 'metadata.name=work', version, (type, seen) => {
      assert.equal(type, 'MODIFIED');
      return seen.status.conditions?.some((c) => c.type === 'Complete' && c.status === 'True');
    });
    assert.equal(done.status.succeeded, 3);
    assert.equal(done.status.completedIndexes, '0-2');
    const read = await batch.readNamespacedJobStatus({ namespace, name: 'work' });
    assert(read.status.completionTime >= read.status.startTime, 'times are dates');
  },

  async 'its pods have logs'() {
    const { items } = await core.listNamespacedPod({ namespace, labelSelector: 'job-name=work' });
    assert.equal(items.length, 3);
    for (const { metadata } of items) {
      const wanted = `I am ${metadata.labels['batch.kubernetes.io/job-completion-index']}\n`;
      assert.equal(await core.readNamespacedPodLog({ namespace, name: metadata.name }), wanted);
      const stream = new PassThrough();
      const log = new k8s.Log(config);
      await log.log(namespace, metadata.name, 'main', stream, { follow: true });
      assert.equal(await text(stream), wanted);
    }
  },

  async 'programs run beside a container'() {
    const container = { name: 'main', image: 'unused', command: ['sleep', '1000'] };
    const spec = { containers: [container], terminationGracePeriodSeconds: 0 };
    const body = { metadata: { name: 'visited' }, spec };
    await core.createNamespacedPod({ namespace, body });
    const path = `/api/v1/namespaces/${namespace}/pods`;
    await follow(path, 'metadata.name=visited', '0', (_, pod) => pod.status.phase === 'Running');
    const exec = new k8s.Exec(config);
    const run = async (script, input) => {
      const [out, err] = [new PassThrough(), new PassThrough()];
      const stdin = input === undefined ? null : Readable.from([input]);
      let tell;
      const ended = new Promise((resolve) => (tell = resolve));
      const command = ['sh', '-c', script];
      await exec.exec(namespace, 'visited', 'main', command, out, err, stdin, false, tell);
      const status = await ended;
      out.end();
      err.end();
      return { status, out: await text(out), err: await text(err) };
    };
    const both = await run('echo out; echo err >&2');
    assert.deepEqual([both.out, both.err, both.status.status], ['out\n', 'err\n', 'Success']);
    const fed = await run('read line; echo got $line; exit 7', 'one\n');
    assert.equal(fed.out, 'got one\n');
    assert.equal(fed.status.reason, 'NonZeroExitCode');
    assert.deepEqual(fed.status.details.causes, [{ reason: 'ExitCode', message: '7' }]);
    await core.deleteNamespacedPod({ namespace, name: 'visited' });
  },

  async 'each kind of patch does what it does'() {
    await batch.createNamespacedJob({ namespace, body: job('patched', { suspend: true }) });
    const { JsonPatch, MergePatch, StrategicMergePatch } = k8s.PatchStrategy;
    const finalizers = (...names) => ({ metadata: { finalizers: names } });
    // A list replaces the whole list, but for a strategic merge, which adds to this one.
    let patched = await patch(MergePatch, finalizers('example.com/a'));
    assert.deepEqual(patched.metadata.finalizers, ['example.com/a']);
    patched = await patch(StrategicMergePatch, finalizers('example.com/b'));
    assert.deepEqual(patched.metadata.finalizers.sort(), ['example.com/a', 'example.com/b']);
    // Without a word about the kind the client sends a JSON patch.
    const body = [
      { op: 'test', path: '/spec/suspend', value: true },
      { op: 'replace', path: '/spec/parallelism', value: 2 },
      { op: 'remove', path: '/metadata/finalizers' },
    ];
    patched = await batch.patchNamespacedJob({ namespace, name: 'patched', body });
    assert.equal(patched.spec.parallelism, 2);
    assert.equal(patched.metadata.finalizers, undefined);
    body[0].value = false;
    let status = await refused(422, patch(JsonPatch, body));
    assert.equal(status.reason, 'Invalid');
    status = await refused(409, patch(MergePatch, { metadata: { resourceVersion: '1' } }));
    assert.equal(status.reason, 'Conflict');
  },

  async 'appliers conflict and one can insist'() {
    const head = { apiVersion: 'batch/v1', kind: 'Job' };
    const metadata = { namespace, name: 'applied' };
    const apply = (manager, body, force) =>
      objects.patch(body, undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply);
    const { spec } = job('applied', { suspend: true });
    await apply('one', { ...head, metadata: { ...metadata, labels: { owner: 'one' } }, spec });
    const theirs = { ...head, metadata, spec: { parallelism: 1 } };
    const status = await refused(409, apply('two', theirs, false));
    const [cause] = status.details.causes;
    assert.equal(cause.reason, 'FieldManagerConflict');
    assert.equal(cause.field, '.spec.parallelism');
    const forced = await apply('two', theirs, true);
    assert.equal(forced.spec.parallelism, 1);
    const owned = (manager) =>
      forced.metadata.managedFields.find((entry) => entry.manager === manager).fieldsV1['f:spec'];
    assert('f:parallelism' in owned('two') && !('f:parallelism' in owned('one')));
    // What is no longer applied goes.
    delete spec.parallelism;
    const last = await apply('one', { ...head, metadata, spec });
    assert.equal(last.spec.parallelism, 1);
    assert.equal(last.metadata.labels?.owner, undefined);
  },

  async 'lists can be selected and come in pages'() {
    for (const page of ['0', '1', '2', '3', '4']) {
      const body = { metadata: { name: `page-${page}`, labels: { page } } };
      await core.createNamespacedConfigMap({ namespace, body });
    }
    const list = (options) => core.listNamespacedConfigMap({ namespace, ...options });
    const names = ({ items }) => items.map((item) => item.metadata.name).join(' ');
    assert.equal(names(await list({ labelSelector: 'page in (1,3)' })), 'page-1 page-3');
    const others = await list({ labelSelector: 'page,page notin (1,3)' });
    assert.equal(names(others), 'page-0 page-2 page-4');
    assert.equal(names(await list({ fieldSelector: 'metadata.name=page-2' })), 'page-2');
    const pages = [];
    let _continue;
    do {
      const page = await list({ labelSelector: 'page', limit: 2, _continue });
      pages.push(names(page));
      _continue = page.metadata._continue;
    } while (_continue);
    assert.deepEqual(pages, ['page-0 page-1', 'page-2 page-3', 'page-4']);
    const fieldSelector = 'status.phase=Succeeded';
    assert.equal((await core.listNamespacedPod({ namespace, fieldSelector })).items.length, 3);
    const wrong = { namespace, fieldSelector: 'spec.nothing=x' };
    assert.equal((await refused(400, core.listNamespacedPod(wrong))).reason, 'BadRequest');
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'page' });
    assert.equal(names(await list({ labelSelector: 'page' })), '');
  },

  async 'jobs go by each propagation policy'() {
    const labelSelector = 'job-name=doomed';
    const pods = () => core.listNamespacedPod({ namespace, labelSelector });
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const informer = k8s.makeInformer(config, path, pods, labelSelector);
    const [known, gone] = [counter('Pods come'), counter('Pods go')];
    informer.on('add', known.count);
    informer.on('delete', gone.count);
    let failure;
    informer.on('error', (error) => (failure ??= error));
    await informer.start();
    for (const propagationPolicy of ['Background', 'Foreground', 'Orphan']) {
      const body = job('doomed', { script: 'exec sleep 1000' });
      const created = await batch.createNamespacedJob({ namespace, body });
      await known.reached(2);
      const { uid, resourceVersion } = created.metadata;
      const remove = (options) =>
        batch.deleteNamespacedJob({ namespace, name: 'doomed', body: options });
      await refused(409, remove({ propagationPolicy, preconditions: { uid: 'another' } }));
      await remove({ propagationPolicy, preconditions: { uid } });
      const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
      const isGone = (type) => type === 'DELETED';
      await follow(jobs, 'metadata.name=doomed', resourceVersion, isGone);
      const { items } = await pods();
      if (propagationPolicy === 'Foreground') assert.deepEqual(items, []);
      if (propagationPolicy === 'Orphan') {
        const owners = items.map((pod) => pod.metadata.ownerReferences);
        assert.deepEqual(owners, [undefined, undefined]);
        await core.deleteCollectionNamespacedPod({ namespace, labelSelector });
      }
      await gone.reached(2);
    }
    assert.equal(failure, undefined);
    await informer.stop();
  },

  async 'two candidates hand over a lease'() {
    // Nobody waits for its end: who leaves gives it back.
    const pace = { leaseSeconds: 30, retryMilliseconds: 200 };
    const candidate = (name) => new Candidate(leases, namespace, 'leader', name, pace);
    const read = () => leases.readNamespacedLease({ namespace, name: 'leader' });
    const [first, second] = [candidate('first'), candidate('second')];
    const ended = [first.run()];
    await within(Promise.race([first.leads, ...ended]), 'somebody leads');
    ended.push(second.run());
    const lease = await read();
    assert.equal(lease.spec.holderIdentity, 'first');
    // It renews what it holds, and the other one leaves it alone.
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const { resourceVersion } = lease.metadata;
    const renewed = await follow(path, 'metadata.name=leader', resourceVersion, () => true);
    assert.equal(renewed.spec.holderIdentity, 'first');
    assert(new Date(renewed.spec.renewTime) > new Date(lease.spec.renewTime));
    first.leave();
    await within(Promise.race([second.leads, ended[1]]), 'the other one leads');
    const { spec } = await read();
    assert.equal(spec.holderIdentity, 'second');
    assert.equal(spec.leaseTransitions, 1);
    // What one has read before the hand-over cannot be written any more.
    const stale = leases.replaceNamespacedLease({ namespace, name: 'leader', body: lease });
    assert.equal((await refused(409, stale)).reason, 'Conflict');
    second.leave();
    await within(Promise.all(ended), 'both have left');
  },

  async 'the namespace goes with what is in it'() {
    const { metadata } = await core.deleteNamespace({ name: namespace });
    const isGone = (type) => type === 'DELETED';
    const fields = `metadata.name=${namespace}`;
    await follow('/api/v1/namespaces', fields, metadata.resourceVersion, isGone);
    assert.deepEqual((await batch.listNamespacedJob({ namespace })).items, []);
  },
};

for (const [name, take] of Object.entries(steps)) {
  await take();
  console.log(`node: ${name}`);
}

// An Indexed Job as a manifest has it.
function job(name, { completions = 2, parallelism = 2, suspend = false, script = 'true' } = {}) {
  const container = { name: 'main', image: 'busybox', command: ['sh', '-c', script] };
  const pod = { restartPolicy: 'Never', terminationGracePeriodSeconds: 1, containers: [container] };
  const spec = { completions, parallelism, suspend, completionMode: 'Indexed' };
  return { metadata: { name }, spec: { ...spec, template: { spec: pod } } };
}

function patch(strategy, body) {
  const options = k8s.setHeaderOptions('Content-Type', strategy);
  return batch.patchNamespacedJob({ namespace, name: 'patched', body }, options);
}

// The object of the first event after a version for which this is true.
async function follow(path, fieldSelector, resourceVersion, isWanted) {
  const query = { fieldSelector, resourceVersion, timeoutSeconds: patienceSeconds };
  let request;
  const found = new Promise((resolve, reject) => {
    const look = (type, object) => {
      try {
        assert.notEqual(type, 'ERROR', JSON.stringify(object));
        if (isWanted(type, object)) resolve(object);
      } catch (error) {
        reject(error);
      }
    };
    const end = (error) => reject(error ?? new Error(`${path} ${fieldSelector}: in vain`));
    request = new k8s.Watch(config).watch(path, query, look, end);
    request.catch(reject);
  });
  try {
    return await found;
  } finally {
    (await request).abort();
  }
}

// The Status that a call is refused with, out of the client's own error.
async function refused(code, call) {
  try {
    await call;
  } catch (error) {
    assert(error instanceof k8s.ApiException, error);
    assert.equal(error.code, code, error);
    const status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
    assert.equal(status.kind, 'Status');
    assert.equal(status.code, code);
    return status;
  }
  throw new assert.AssertionError({ message: 'it is not refused' });
}

// Counts what happens, and tells when it has happened so often since it was last asked.
function counter(what) {
  let happened = 0;
  let look = () => {};
  const count = () => {
    happened += 1;
    look();
  };
  const reached = async (wanted) => {
    const enough = new Promise((resolve) => {
      look = () => happened >= wanted && resolve();
      look();
    });
    await within(enough, what);
    happened -= wanted;
  };
  return { count, reached };
}

async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`in vain: ${what}`)), patienceSeconds * 1000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
