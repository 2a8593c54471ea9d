// Command walk does what a user of client-go does with Jobs, step by step, on the cluster of
// KUBECONFIG: with bodies in protobuf, and again in JSON.
//
// It prints one line for each step. The first thing that is not as it is on Kubernetes ends it with
// the exit code 1, and so does whatever the client complains about: a server's warning, a watch that
// it could not have the way it wanted.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Nothing here takes that long; whatever does is stuck.
const patience = 60 * time.Second

// walk is one way through all steps.
type walk struct {
	kubernetes.Interface
	config    *rest.Config
	ctx       context.Context
	namespace string
}

func main() {
	complaints := &complaints{}
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	check(flags.Set("logtostderr", "false"))
	check(flags.Set("stderrthreshold", "FATAL"))
	klog.SetOutputBySeverity("INFO", io.Discard)
	klog.SetOutputBySeverity("WARNING", complaints)

	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.WarningHandler = complaints
	// Else it asks five times a second.
	config.QPS = -1
	for _, way := range []struct{ name, contentType string }{
		{"protobuf", runtime.ContentTypeProtobuf},
		{"json", runtime.ContentTypeJSON},
	} {
		config := rest.CopyConfig(config)
		config.ContentType = way.contentType
		config.AcceptContentTypes = way.contentType + ",application/json"
		clientset, err := kubernetes.NewForConfig(config)
		check(err)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		w := &walk{clientset, config, ctx, "walk-go-" + way.name}
		for _, step := range []struct {
			name string
			take func()
		}{
			{"what there is is told in one document", w.discovery},
			{"a namespace comes with its service account", w.namespaceComes},
			{"a config map goes there and back", w.configMap},
			{"an object that is wrong is refused with its field", w.refusal},
			{"a job runs to its end under an informer", w.jobRuns},
			{"its pods have logs", w.logs},
			{"informers without types and of metadata see it", w.family},
			{"events about it are counted", w.events},
			{"each kind of patch does what it does", w.patches},
			{"appliers conflict and one can insist", w.apply},
			{"lists can be selected and come in pages", w.lists},
			{"jobs go by each propagation policy", w.deletion},
			{"two candidates hand over a lease", w.election},
			{"the namespace goes with what is in it", w.namespaceGoes},
		} {
			step.take()
			complaints.check()
			fmt.Printf("go, %s: %s\n", way.name, step.name)
		}
		cancel()
	}
}

// complaints are what the client says on its own account.
type complaints struct {
	sync.Mutex
	said string
}

func (c *complaints) Write(text []byte) (int, error) {
	c.Lock()
	defer c.Unlock()
	// A leader that leaves tells what was under way then. If that was a renewal, it may be written
	// between its last look at the Lease and its release, which is refused then, and rightly so.
	for _, usual := range []string{context.Canceled.Error(), "Failed to release lease"} {
		if strings.Contains(string(text), usual) {
			return len(text), nil
		}
	}
	c.said += string(text)
	return len(text), nil
}

func (c *complaints) HandleWarningHeader(code int, agent, text string) {
	_, _ = fmt.Fprintf(c, "the server warns: %d %s %s\n", code, agent, text)
}

func (c *complaints) check() {
	c.Lock()
	defer c.Unlock()
	if c.said != "" {
		fail("%s", c.said)
	}
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func same(got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		fail("%#v is not %#v", got, wanted)
	}
}

// fail panics, so that one sees where it was.
func fail(format string, arguments ...any) {
	panic(fmt.Sprintf(format, arguments...))
}
