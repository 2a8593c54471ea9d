package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// election has a leader that renews its Lease, leaves, and is followed by another candidate.
func (w *walk) election() {
	leads := make(chan string, 2)
	candidate := func(name string) (leave func(), left chan struct{}) {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, w.namespace, "leader",
			w.CoreV1(), w.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		check(err)
		ctx, leave := context.WithCancel(w.ctx)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:            lock,
			LeaseDuration:   5 * time.Second,
			RenewDeadline:   4 * time.Second,
			RetryPeriod:     500 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() {},
			},
		})
		check(err)
		left = make(chan struct{})
		go func() {
			elector.Run(ctx)
			close(left)
		}()
		return leave, left
	}
	leader := func() string {
		select {
		case name := <-leads:
			return name
		case <-w.ctx.Done():
			fail("nobody leads")
			return ""
		}
	}
	leases := w.CoordinationV1().Leases(w.namespace)
	leaveFirst, firstLeft := candidate("first")
	same(leader(), "first")
	leaveSecond, secondLeft := candidate("second")
	lease, err := leases.Get(w.ctx, "leader", metav1.GetOptions{})
	check(err)
	same(*lease.Spec.HolderIdentity, "first")
	// It renews what it holds, and the other one leaves it alone.
	watching, err := leases.Watch(w.ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=leader", ResourceVersion: lease.ResourceVersion,
	})
	check(err)
	until(watching, "MODIFIED")
	renewed, err := leases.Get(w.ctx, "leader", metav1.GetOptions{})
	check(err)
	same(*renewed.Spec.HolderIdentity, "first")
	same(renewed.Spec.RenewTime.After(lease.Spec.RenewTime.Time), true)
	same(len(leads), 0)

	leaveFirst()
	<-firstLeft
	same(leader(), "second")
	lease, err = leases.Get(w.ctx, "leader", metav1.GetOptions{})
	check(err)
	same(*lease.Spec.HolderIdentity, "second")
	same(*lease.Spec.LeaseTransitions > 0, true)
	leaveSecond()
	<-secondLeft
}
