package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func (w *walk) namespaceComes() {
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	_, err := w.CoreV1().Namespaces().Create(w.ctx, wanted, metav1.CreateOptions{})
	check(err)
	options := metav1.ListOptions{FieldSelector: "metadata.name=default"}
	watching, err := w.CoreV1().ServiceAccounts(w.namespace).Watch(w.ctx, options)
	check(err)
	until(watching, watch.Added)
}

func (w *walk) namespaceGoes() {
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + w.namespace}
	watching, err := w.CoreV1().Namespaces().Watch(w.ctx, options)
	check(err)
	check(w.CoreV1().Namespaces().Delete(w.ctx, w.namespace, metav1.DeleteOptions{}))
	until(watching, watch.Deleted)
	left, err := w.BatchV1().Jobs(w.namespace).List(w.ctx, metav1.ListOptions{})
	check(err)
	same(len(left.Items), 0)
}

// until waits for an event of this type.
func until(watching watch.Interface, wanted watch.EventType) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		switch event.Type {
		case wanted:
			return
		case watch.Error:
			fail("%v", apierrors.FromObject(event.Object))
		}
	}
	fail("the watch has ended before anything was %s", wanted)
}

func (w *walk) jobRuns() {
	ctx, stop := context.WithCancel(w.ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(w.Interface, 0, informers.WithNamespace(w.namespace))
	jobs, pods := factory.Batch().V1().Jobs(), factory.Core().V1().Pods()
	complete := make(chan *batchv1.Job, 1)
	_, err := jobs.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, new any) {
			job := new.(*batchv1.Job)
			if job.Name == "work" && isComplete(job) {
				select {
				case complete <- job:
				default:
				}
			}
		},
	})
	check(err)
	pods.Informer()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			fail("the informer of %v did not sync", kind)
		}
	}
	wanted := job("work", "echo I am $JOB_COMPLETION_INDEX")
	wanted.Spec.Completions = ptr.To[int32](3)
	created, err := w.BatchV1().Jobs(w.namespace).Create(w.ctx, wanted, metav1.CreateOptions{})
	check(err)
	same(*created.Spec.BackoffLimit, int32(6))
	same(created.GroupVersionKind().Empty(), true)
	select {
	case done := <-complete:
		same(done.Status.Succeeded, int32(3))
		same(done.Status.CompletedIndexes, "0-2")
		same(done.Status.CompletionTime.Before(done.Status.StartTime), false)
	case <-ctx.Done():
		fail("the Job did not complete")
	}
	// What the informer has is what the server has.
	cached, err := jobs.Lister().Jobs(w.namespace).List(labels.Everything())
	check(err)
	same(len(cached), 1)
	listed, err := w.BatchV1().Jobs(w.namespace).Get(w.ctx, "work", metav1.GetOptions{})
	check(err)
	same(listed.UID, cached[0].UID)
	stop()
	factory.Shutdown()
}

func isComplete(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue
	})
}

func (w *walk) logs() {
	pods := w.CoreV1().Pods(w.namespace)
	list, err := pods.List(w.ctx, metav1.ListOptions{LabelSelector: "job-name=work"})
	check(err)
	same(len(list.Items), 3)
	for _, pod := range list.Items {
		log, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(w.ctx)
		check(err)
		text, err := io.ReadAll(bufio.NewReader(log))
		check(err)
		check(log.Close())
		same(string(text), fmt.Sprintf("I am %s\n", pod.Labels[batchv1.JobCompletionIndexAnnotation]))
	}
}

func (w *walk) deletion() {
	ctx, stop := context.WithCancel(w.ctx)
	known, gone := make(chan string, 10), make(chan string, 10)
	factory := informers.NewSharedInformerFactoryWithOptions(w.Interface, 0,
		informers.WithNamespace(w.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.LabelSelector = "job-name=doomed"
		}))
	pods := factory.Core().V1().Pods()
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { known <- pod.(*corev1.Pod).Name },
		DeleteFunc: func(pod any) { gone <- pod.(*corev1.Pod).Name },
	})
	check(err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	take := func(channel chan string, what string) {
		for range 2 {
			select {
			case <-channel:
			case <-ctx.Done():
				fail("%s", what)
			}
		}
	}
	jobs := w.BatchV1().Jobs(w.namespace)
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		created, err := jobs.Create(w.ctx, job("doomed", "exec sleep 1000"), metav1.CreateOptions{})
		check(err)
		take(known, "there are no Pods")
		watching, err := jobs.Watch(w.ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=doomed", ResourceVersion: created.ResourceVersion,
		})
		check(err)
		options := metav1.DeleteOptions{
			PropagationPolicy: &policy, Preconditions: metav1.NewUIDPreconditions("another"),
		}
		same(apierrors.IsConflict(jobs.Delete(w.ctx, "doomed", options)), true)
		options.Preconditions = metav1.NewUIDPreconditions(string(created.UID))
		check(jobs.Delete(w.ctx, "doomed", options))
		until(watching, watch.Deleted)
		selected := metav1.ListOptions{LabelSelector: "job-name=doomed"}
		left, err := w.CoreV1().Pods(w.namespace).List(w.ctx, selected)
		check(err)
		switch policy {
		case metav1.DeletePropagationForeground:
			same(len(left.Items), 0)
		case metav1.DeletePropagationOrphan:
			same(len(left.Items), 2)
			for _, pod := range left.Items {
				same(len(pod.OwnerReferences), 0)
			}
			check(w.CoreV1().Pods(w.namespace).DeleteCollection(w.ctx, metav1.DeleteOptions{}, selected))
		}
		take(gone, "the Pods stay")
	}
	stop()
	factory.Shutdown()
}
