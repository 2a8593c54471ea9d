package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// family has the Job of an earlier step seen by the clients that know no types, or metadata only.
func (w *walk) family() {
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	seen := make(chan string, 10)
	handlers := func(informer string) cache.ResourceEventHandlerFuncs {
		report := func(object any) {
			job := object.(metav1.Object)
			if job.GetName() == "work" && job.GetLabels()["seen"] == "yes" {
				seen <- informer
			}
		}
		return cache.ResourceEventHandlerFuncs{
			AddFunc:    report,
			UpdateFunc: func(_, new any) { report(new) },
		}
	}

	untyped, err := dynamic.NewForConfig(w.config)
	check(err)
	dynamicFactory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, w.namespace, nil)
	ofObjects := dynamicFactory.ForResource(jobs).Informer()
	_, err = ofObjects.AddEventHandler(handlers("objects"))
	check(err)
	dynamicFactory.Start(ctx.Done())

	headers, err := metadata.NewForConfig(w.config)
	check(err)
	metadataFactory := metadatainformer.NewFilteredSharedInformerFactory(headers, 0, w.namespace, nil)
	ofMetadata := metadataFactory.ForResource(jobs).Informer()
	_, err = ofMetadata.AddEventHandler(handlers("metadata"))
	check(err)
	metadataFactory.Start(ctx.Done())
	same(cache.WaitForCacheSync(ctx.Done(), ofObjects.HasSynced, ofMetadata.HasSynced), true)

	body := map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": "work", "labels": map[string]any{"seen": "yes"}},
	}
	_, err = untyped.Resource(jobs).Namespace(w.namespace).Apply(w.ctx, "work",
		&unstructured.Unstructured{Object: body}, metav1.ApplyOptions{FieldManager: "family"})
	check(err)
	for by := map[string]bool{}; len(by) < 2; {
		select {
		case informer := <-seen:
			by[informer] = true
		case <-ctx.Done():
			fail("the label was seen only by %v", by)
		}
	}
}

// events has the same thing told three times, which the recorder counts in one Event.
func (w *walk) events() {
	job, err := w.BatchV1().Jobs(w.namespace).Get(w.ctx, "work", metav1.GetOptions{})
	check(err)
	watching, err := w.CoreV1().Events(w.namespace).Watch(w.ctx, metav1.ListOptions{
		FieldSelector: "reason=Looked,involvedObject.name=work",
	})
	check(err)
	defer watching.Stop()
	broadcaster := record.NewBroadcaster(record.WithContext(w.ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: w.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "walk"})
	for range 3 {
		recorder.Event(job, corev1.EventTypeNormal, "Looked", "somebody has looked")
	}
	for event := range watching.ResultChan() {
		told, ok := event.Object.(*corev1.Event)
		if !ok || event.Type == watch.Error {
			fail("%v", event)
		}
		if told.Count == 3 {
			same(told.InvolvedObject.UID, job.UID)
			return
		}
	}
	fail("the Event was not counted")
}
