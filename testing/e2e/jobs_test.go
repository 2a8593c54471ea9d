// Package e2e has Kubernetes' own end-to-end tests of Jobs, as they are published, for a cluster that pulls no images.
//
// They go to the cluster of KUBECONFIG through a proxy, which says what the images of the tests would: what a container
// without a command runs, and that sh is one that knows [[ and RANDOM. All else is passed on as it comes, in protobuf.
package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	_ "k8s.io/kubernetes/test/e2e/apps"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	folder := try(os.MkdirTemp("", "e2e"))
	proxy := httptest.NewServer(proxyTo(os.Getenv("KUBECONFIG"), folder))
	kubeconfig := filepath.Join(folder, "kubeconfig")
	write(kubeconfig, proxy.URL)
	framework.TestContext.KubeConfig = kubeconfig
	// Nodes need not be like those of a real cluster.
	framework.TestContext.AllowedNotReadyNodes = -1
	framework.AfterReadingAllFlags(&framework.TestContext)
	code := m.Run()
	proxy.CloseClientConnections()
	os.RemoveAll(folder)
	os.Exit(code)
}

func TestJobs(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	ginkgo.RunSpecs(t, "Kubernetes' end-to-end tests of Jobs")
}

// The API server of a kubeconfig, which is asked with the credentials there.
func proxyTo(kubeconfig, folder string) http.Handler {
	config := try(clientcmd.BuildConfigFromFlags("", kubeconfig))
	transport := try(rest.TransportFor(config))
	server := try(url.Parse(config.Host))
	return &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(server)
			if body := request.Out.Body; body != nil && strings.HasSuffix(request.In.URL.Path, "/jobs") {
				sent := try(io.ReadAll(body))
				sent = asImagesSay(sent, request.In.Header.Get("Content-Type"), folder)
				request.Out.Body = io.NopCloser(bytes.NewReader(sent))
				request.Out.ContentLength = int64(len(sent))
			}
		},
		Transport:     transport,
		FlushInterval: -1,
	}
}

// A body with what the images of a Job's containers would say; any other as it is.
func asImagesSay(body []byte, contentType, folder string) []byte {
	info, known := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	if !known {
		return body
	}
	object, _, err := info.Serializer.Decode(body, nil, nil)
	job, isJob := object.(*batchv1.Job)
	if err != nil || !isJob {
		return body
	}
	pod := &job.Spec.Template.Spec
	for index := range pod.Containers {
		container := &pod.Containers[index]
		switch {
		case len(container.Command) == 0 && strings.Contains(container.Image, "/pause:"):
			container.Command = []string{"sleep", "1000000"}
		case len(container.Command) == 0:
			container.Command = []string{"bash", "-c", "exit 0"}
		case container.Command[0] == "sh" || container.Command[0] == "/bin/sh":
			container.Command[0] = "bash"
		}
	}
	// What Pods leave on their node goes with all else.
	for index := range pod.Volumes {
		if host := pod.Volumes[index].HostPath; host != nil {
			host.Path = filepath.Join(folder, host.Path)
			host.Type = new(corev1.HostPathType)
			*host.Type = corev1.HostPathDirectoryOrCreate
		}
	}
	return try(runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, batchv1.SchemeGroupVersion), job))
}

// A kubeconfig of a cluster that asks for no credentials.
func write(path, server string) {
	const name = "proxy"
	config := api.Config{
		Clusters:       map[string]*api.Cluster{name: {Server: server}},
		AuthInfos:      map[string]*api.AuthInfo{name: {}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		panic(fmt.Sprintf("%s: %v", path, err))
	}
}

func try[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
