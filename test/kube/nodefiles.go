package kube

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"text/template"

	_ "embed"

	"github.com/holdfast-storage/holdfast/control/pki"
)

//go:embed containerd.toml
var containerdConfig string

//go:embed kubelet.yaml
var kubeletConfig string

//go:embed kube-proxy.yaml
var proxyConfig string

//go:embed cni.conflist
var networkConfig string

// file is where a file of the node's configuration lies.
func (n *Node) file(name string) string { return filepath.Join(n.Dir(), "kubernetes", name) }

// podNetwork is where the addresses of the node's pods are from. Other labs may have the same: no
// address of a pod leaves its lab.
func (n *Node) podNetwork() string { return fmt.Sprintf("10.244.%d.0/24", n.number) }

// values are what the templates of the node's files refer to.
type values struct {
	Name, IP, PodNetwork, Cgroup, Dir string
	// CA, Cert and Key are files.
	CA, Cert, Key string
	// ProxyKubeconfig is a file.
	ProxyKubeconfig string
}

// install gives the node its images and files.
func (n *Node) install() error {
	dir, at := n.file(""), n.cluster.path("pki")
	if err := os.MkdirAll(filepath.Join(dir, "cni"), 0o755); err != nil {
		return fmt.Errorf("while making a directory for node %s: %w", n.Name, err)
	}
	leaf := pki.Leaf{User: n.Name, Server: true, DNS: []string{n.Name}, IPs: []net.IP{net.ParseIP(n.IP)}}
	if err := n.cluster.pair(n.Name, leaf); err != nil {
		return err
	}
	v := values{
		Name: n.Name, IP: n.IP, PodNetwork: n.podNetwork(), Cgroup: n.Cgroup(), Dir: dir,
		CA: pki.CertFile(at, "ca"), Cert: pki.CertFile(at, n.Name), Key: pki.KeyFile(at, n.Name),
		ProxyKubeconfig: n.cluster.proxy,
	}
	for name, text := range map[string]string{
		"containerd.toml": containerdConfig, "kubelet.yaml": kubeletConfig, "kube-proxy.yaml": proxyConfig,
		"cni/10-pods.conflist": networkConfig, "resolv.conf": "nameserver 127.0.0.1\n",
	} {
		if err := fill(filepath.Join(dir, name), text, v); err != nil {
			return err
		}
	}
	for name, value := range kernelSettings {
		if err := os.WriteFile(n.file(filepath.Base(name)), []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("while writing a file of node %s: %w", n.Name, err)
		}
	}
	return cloneImages(n.Path("/var/lib/containerd"))
}

// fill writes a file from a template.
func fill(path, text string, v values) error {
	var out bytes.Buffer
	parsed, err := template.New(filepath.Base(path)).Option("missingkey=error").Parse(text)
	if err == nil {
		err = parsed.Execute(&out, v)
	}
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("while writing %s: %w", path, err)
	}
	return nil
}
