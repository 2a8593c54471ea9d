package main

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
)

func (w *walk) discovery() {
	_, lists, err := w.Discovery().ServerGroupsAndResources()
	check(err)
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if list.GroupVersion == "batch/v1" && resource.Name == "jobs" {
				return
			}
		}
	}
	fail("there are no Jobs in %v", lists)
}

func (w *walk) configMap() {
	configMaps := w.CoreV1().ConfigMaps(w.namespace)
	// Values and bytes that a careless reader would spoil.
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"},
		Data:       map[string]string{"empty": "", "text": "Grüße\n\tin \"quotes\" \u2028", "number": "0012"},
		BinaryData: map[string][]byte{"bytes": {0, 255, 127, 128}},
		Immutable:  ptr.To(false),
	}
	created, err := configMaps.Create(w.ctx, wanted, metav1.CreateOptions{FieldValidation: "Strict"})
	check(err)
	read, err := configMaps.Get(w.ctx, "settings", metav1.GetOptions{})
	check(err)
	same(read, created)
	same(read.Data, wanted.Data)
	same(read.BinaryData, wanted.BinaryData)
	same(read.Immutable, wanted.Immutable)

	_, err = configMaps.Create(w.ctx, wanted, metav1.CreateOptions{})
	same(apierrors.IsAlreadyExists(err), true)
	read.Data["more"] = "x"
	_, err = configMaps.Update(w.ctx, read, metav1.UpdateOptions{})
	check(err)
	_, err = configMaps.Update(w.ctx, read, metav1.UpdateOptions{})
	same(apierrors.IsConflict(err), true)
	check(configMaps.Delete(w.ctx, "settings", metav1.DeleteOptions{}))
	_, err = configMaps.Get(w.ctx, "settings", metav1.GetOptions{})
	same(apierrors.IsNotFound(err), true)
	same(status(err).Details.Name, "settings")
}

func (w *walk) refusal() {
	wrong := job("wrong", "true")
	wrong.Spec.Completions = ptr.To[int32](-1)
	wrong.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	_, err := w.BatchV1().Jobs(w.namespace).Create(w.ctx, wrong, metav1.CreateOptions{})
	same(apierrors.IsInvalid(err), true)
	same(status(err).Code, int32(422))
	same(status(err).Details.Kind, "Job")
	causes := map[string]metav1.CauseType{}
	for _, cause := range status(err).Details.Causes {
		causes[cause.Field] = cause.Type
	}
	same(causes["spec.completions"], metav1.CauseTypeFieldValueInvalid)
	same(causes["spec.template.spec.restartPolicy"], metav1.CauseTypeFieldValueRequired)
	same(apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid), true)
}

func (w *walk) patches() {
	jobs := w.BatchV1().Jobs(w.namespace)
	_, err := jobs.Create(w.ctx, suspended("patched"), metav1.CreateOptions{})
	check(err)
	patch := func(kind types.PatchType, body string) *batchv1.Job {
		job, err := jobs.Patch(w.ctx, "patched", kind, []byte(body), metav1.PatchOptions{})
		check(err)
		return job
	}
	// A list replaces the whole list, but for a strategic merge, which adds to this one.
	patched := patch(types.MergePatchType, `{"metadata": {"finalizers": ["example.com/a"]}}`)
	same(patched.Finalizers, []string{"example.com/a"})
	patched = patch(types.StrategicMergePatchType, `{"metadata": {"finalizers": ["example.com/b"]}}`)
	same(len(patched.Finalizers), 2)
	patched = patch(types.JSONPatchType, `[
		{"op": "test", "path": "/spec/suspend", "value": true},
		{"op": "replace", "path": "/spec/parallelism", "value": 2},
		{"op": "remove", "path": "/metadata/finalizers"}]`)
	same(*patched.Spec.Parallelism, int32(2))
	same(len(patched.Finalizers), 0)
	body := []byte(`[{"op": "test", "path": "/spec/suspend", "value": false}]`)
	_, err = jobs.Patch(w.ctx, "patched", types.JSONPatchType, body, metav1.PatchOptions{})
	same(apierrors.IsInvalid(err), true)
	body = []byte(`{"metadata": {"resourceVersion": "1"}}`)
	_, err = jobs.Patch(w.ctx, "patched", types.MergePatchType, body, metav1.PatchOptions{})
	same(apierrors.IsConflict(err), true)
	// A subresource: the status belongs to whoever runs the Job.
	body = []byte(`{"status": {"ready": 0}, "spec": {"parallelism": 7}}`)
	patched, err = jobs.Patch(w.ctx, "patched", types.MergePatchType, body, metav1.PatchOptions{}, "status")
	check(err)
	same(*patched.Spec.Parallelism, int32(2))
}

func (w *walk) apply() {
	jobs := w.BatchV1().Jobs(w.namespace)
	container := corev1ac.Container().WithName("main").WithImage("busybox").WithCommand("true")
	template := corev1ac.PodTemplateSpec().WithSpec(
		corev1ac.PodSpec().WithRestartPolicy(corev1.RestartPolicyNever).WithContainers(container))
	mine := func() *batchv1ac.JobApplyConfiguration {
		spec := batchv1ac.JobSpec().WithSuspend(true).WithTemplate(template)
		return batchv1ac.Job("applied", w.namespace).WithSpec(spec)
	}
	first := mine().WithLabels(map[string]string{"owner": "one"})
	first.Spec.WithParallelism(1)
	_, err := jobs.Apply(w.ctx, first, metav1.ApplyOptions{FieldManager: "one"})
	check(err)
	theirs := batchv1ac.Job("applied", w.namespace).WithSpec(batchv1ac.JobSpec().WithParallelism(2))
	_, err = jobs.Apply(w.ctx, theirs, metav1.ApplyOptions{FieldManager: "two"})
	same(apierrors.IsConflict(err), true)
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldManagerConflict)
	same(ok, true)
	same(cause.Field, ".spec.parallelism")
	forced, err := jobs.Apply(w.ctx, theirs, metav1.ApplyOptions{FieldManager: "two", Force: true})
	check(err)
	same(*forced.Spec.Parallelism, int32(2))
	owned, err := batchv1ac.ExtractJob(forced, "two")
	check(err)
	same(owned.Spec, theirs.Spec)
	owned, err = batchv1ac.ExtractJob(forced, "one")
	check(err)
	same(owned.Spec.Parallelism == nil && *owned.Spec.Suspend, true)
	// What is no longer applied goes.
	last, err := jobs.Apply(w.ctx, mine(), metav1.ApplyOptions{FieldManager: "one"})
	check(err)
	same(*last.Spec.Parallelism, int32(2))
	same(last.Labels["owner"], "")
}

func (w *walk) lists() {
	configMaps := w.CoreV1().ConfigMaps(w.namespace)
	for number := range 5 {
		wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("page-%d", number),
			Labels: map[string]string{"page": fmt.Sprint(number)},
		}}
		_, err := configMaps.Create(w.ctx, wanted, metav1.CreateOptions{})
		check(err)
	}
	names := func(options metav1.ListOptions) string {
		list, err := configMaps.List(w.ctx, options)
		check(err)
		var names []string
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		return strings.Join(names, " ")
	}
	same(names(metav1.ListOptions{LabelSelector: "page in (1,3)"}), "page-1 page-3")
	same(names(metav1.ListOptions{LabelSelector: "page,page notin (1,3)"}), "page-0 page-2 page-4")
	selector := fields.OneTermEqualSelector("metadata.name", "page-2").String()
	same(names(metav1.ListOptions{FieldSelector: selector}), "page-2")

	var pages []int
	options := metav1.ListOptions{LabelSelector: "page", Limit: 2}
	for {
		page, err := configMaps.List(w.ctx, options)
		check(err)
		pages = append(pages, len(page.Items))
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	same(pages, []int{2, 2, 1})
	pods := w.CoreV1().Pods(w.namespace)
	done, err := pods.List(w.ctx, metav1.ListOptions{FieldSelector: "status.phase=Succeeded"})
	check(err)
	same(len(done.Items), 3)
	_, err = pods.List(w.ctx, metav1.ListOptions{FieldSelector: "spec.nothing=x"})
	same(apierrors.IsBadRequest(err), true)
	check(configMaps.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "page"}))
	same(names(metav1.ListOptions{LabelSelector: "page"}), "")
}

// status is what an error of the client says that the server said.
func status(err error) metav1.Status {
	answer, ok := err.(apierrors.APIStatus)
	if !ok {
		fail("no Status: %v", err)
	}
	return answer.Status()
}

// job is an Indexed Job of two Pods that run a script.
func job(name, script string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Completions:    ptr.To[int32](2),
			Parallelism:    ptr.To[int32](2),
			CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy:                 corev1.RestartPolicyNever,
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Containers: []corev1.Container{{
					Name: "main", Image: "busybox", Command: []string{"sh", "-c", script},
				}},
			}},
		},
	}
}

func suspended(name string) *batchv1.Job {
	job := job(name, "true")
	job.Spec.Suspend = ptr.To(true)
	return job
}
