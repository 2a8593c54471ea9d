// kube-controller-manager as it is, but for how long it waits after a failure of a Pod: a constant
// of ten seconds that no flag changes. For benchmarks of Jobs with failures.
package main

import (
	"os"
	"time"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/pkg/controller/job"
)

func main() {
	job.DefaultJobPodFailureBackOff = 100 * time.Millisecond
	job.MaxJobPodFailureBackOff = time.Second
	os.Exit(cli.Run(app.NewControllerManagerCommand()))
}
