package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// everywhere is a pod of Holdfast's image on each node, and a service with the addresses of all of
// them.
const everywhere = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: ` + Image + `
        imagePullPolicy: Never
        command: [python3, -u, -c]
        args:
        - |
          import http.server, os
          class Name(http.server.BaseHTTPRequestHandler):
              def do_GET(self):
                  self.send_response(200); self.end_headers(); self.wfile.write(os.environ["NODE"].encode())
          print("serving on " + os.environ["NODE"])
          http.server.HTTPServer(("", 8080), Name).serve_forever()
        env:
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

// TestBed shows that pods run as on real machines, which lose their power and come back, or are cut
// off.
func TestBed(t *testing.T) {
	began := time.Now()
	k := New(t, Options{Nodes: 3, Disks: 1})
	t.Logf("three nodes are Ready after %s", time.Since(began).Round(time.Millisecond))
	k.Apply(t, everywhere)
	pods := k.awaitPods(t, 3)
	for node, pod := range pods {
		k.checkPod(t, node, pod)
	}
	checkService(t, k, pods)

	k.Node(2).PowerOff(t)
	k.Node(2).AwaitNotReady(t)
	if reason := k.reach(pods["h1"], "h2", pods); reason == nil {
		t.Error("the pod of a node without power answers")
	}
	k.Node(2).PowerOn(t)
	k.Node(2).AwaitReady(t)
	pods = k.awaitPods(t, 3)
	k.checkPod(t, "h2", pods["h2"])

	k.Node(3).Cut(t)
	k.Node(3).AwaitNotReady(t)
	k.Node(3).Restore(t)
	k.Node(3).AwaitReady(t)

	k.StopAPIServer(t)
	k.StartAPIServer(t)
	k.checkPod(t, "h1", k.awaitPods(t, 3)["h1"])
}

// awaitPods waits until so many pods serve, and returns their names by their nodes.
func (c *Cluster) awaitPods(t *testing.T, count int) map[string]core.Pod {
	t.Helper()
	serving := map[string]core.Pod{}
	await(t, fmt.Sprintf("%d pods that serve", count), func(ctx context.Context) error {
		clear(serving)
		list, err := c.Client().CoreV1().Pods("default").List(ctx, meta.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if isReady(pod) {
				serving[pod.Spec.NodeName] = pod
			}
		}
		if len(serving) != count {
			return fmt.Errorf("%d serve", len(serving))
		}
		return nil
	})
	return serving
}

func isReady(pod core.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == core.PodReady {
			return c.Status == core.ConditionTrue
		}
	}
	return false
}

// checkPod checks that a pod has Holdfast and the storage systems, and that its log can be had.
func (c *Cluster) checkPod(t *testing.T, node string, pod core.Pod) {
	t.Helper()
	if out := c.Kubectl(t, "exec", pod.Name, "--", "ceph", "--version"); !strings.HasPrefix(out, "ceph version") {
		t.Errorf("on %s ceph --version says %q", node, out)
	}
	if out := c.Kubectl(t, "exec", pod.Name, "--", "holdfast", "version"); out == "" {
		t.Errorf("on %s holdfast has no version", node)
	}
	if out := c.Kubectl(t, "logs", pod.Name); !strings.Contains(out, "serving on "+node) {
		t.Errorf("the log of the pod on %s is %q", node, out)
	}
}

// checkService checks that a pod reaches those of all nodes, by their own addresses and by that of
// a service.
func checkService(t *testing.T, k *Cluster, pods map[string]core.Pod) {
	t.Helper()
	for node := range pods {
		if err := k.reach(pods["h1"], node, pods); err != nil {
			t.Errorf("the pod on h1 does not reach that on %s: %v", node, err)
		}
	}
	service, err := k.Client().CoreV1().Services("default").Get(t.Context(), "web", meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the service to answer for each node", func(context.Context) error {
		answers := map[string]bool{}
		for range 20 {
			answer, err := k.fetch(pods["h1"], service.Spec.ClusterIP)
			if err != nil {
				return err
			}
			answers[answer] = true
		}
		if len(answers) != len(pods) {
			return fmt.Errorf("it answers for %v", answers)
		}
		return nil
	})
}

// reach checks that a pod reaches the one on a node.
func (c *Cluster) reach(from core.Pod, node string, pods map[string]core.Pod) error {
	answer, err := c.fetch(from, pods[node].Status.PodIP+":8080")
	if err == nil && answer != node {
		err = errors.New(answer + " answers")
	}
	return err
}

func (c *Cluster) fetch(from core.Pod, address string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return c.Try(ctx, "", "exec", from.Name, "--", "python3", "-c",
		"import urllib.request; print(urllib.request.urlopen('http://"+address+"', timeout=3).read().decode())")
}
