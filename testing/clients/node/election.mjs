// A leader election on a Lease, which @kubernetes/client-node does not have.
//
// A candidate writes itself into the Lease with the resourceVersion that it has read, so of two who
// try at once the server refuses one. It judges by its own clock how long a Lease has not changed, and
// by no time that somebody else has written.

import { V1MicroTime } from '@kubernetes/client-node';

export class Candidate {
  constructor(leases, namespace, lease, identity, { leaseSeconds, retryMilliseconds }) {
    Object.assign(this, { leases, namespace, lease, identity, leaseSeconds, retryMilliseconds });
    this.leads = new Promise((resolve) => (this.startLeading = resolve));
    this.stopped = false;
    this.seen = { version: undefined, at: 0 };
  }

  // Runs until it is told to leave; then it gives back what it holds.
  async run() {
    while (!this.stopped) {
      if (await this.tryToHold()) this.startLeading();
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, this.retryMilliseconds);
      });
    }
    const lease = await this.read();
    if (lease?.spec.holderIdentity === this.identity) {
      lease.spec.holderIdentity = '';
      await this.replace(lease);
    }
  }

  leave() {
    this.stopped = true;
    this.wake?.();
  }

  // Whether it holds the Lease now.
  async tryToHold() {
    const now = new V1MicroTime();
    const lease = await this.read();
    if (!lease) {
      const spec = this.claim(now, now, 0);
      return this.attempt(() =>
        this.leases.createNamespacedLease({
          namespace: this.namespace,
          body: { metadata: { name: this.lease }, spec },
        }),
      );
    }
    const { holderIdentity, acquireTime, leaseTransitions } = lease.spec;
    if (lease.metadata.resourceVersion !== this.seen.version) {
      this.seen = { version: lease.metadata.resourceVersion, at: performance.now() };
    }
    const isMine = holderIdentity === this.identity;
    const isOver = performance.now() - this.seen.at > this.leaseSeconds * 1000;
    if (holderIdentity && !isMine && !isOver) return false;
    lease.spec = isMine
      ? this.claim(acquireTime, now, leaseTransitions)
      : this.claim(now, now, leaseTransitions + 1);
    return this.replace(lease);
  }

  claim(acquireTime, renewTime, leaseTransitions) {
    const { identity: holderIdentity, leaseSeconds: leaseDurationSeconds } = this;
    return { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions };
  }

  async read() {
    try {
      return await this.leases.readNamespacedLease({ namespace: this.namespace, name: this.lease });
    } catch (error) {
      if (error.code === 404) return undefined;
      throw error;
    }
  }

  replace(body) {
    return this.attempt(() =>
      this.leases.replaceNamespacedLease({ namespace: this.namespace, name: this.lease, body }),
    );
  }

  // Whether a write was the first one to come.
  async attempt(write) {
    try {
      await write();
      return true;
    } catch (error) {
      if (error.code === 409) return false;
      throw error;
    }
  }
}
