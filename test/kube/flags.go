package kube

import (
	"fmt"

	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// A node counts as lost after this time, instead of 50 seconds, as tests wait for it. The node says
// that it lives every quarter of nodeLeaseDurationSeconds.
const graceTime = "8s"

// etcd need not survive the machine, and is alone.
func (p *Plane) etcdFlags() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", p.place.ports()[1])
	peer := fmt.Sprintf("http://127.0.0.1:%d", p.place.ports()[2])
	return []string{
		"--data-dir=" + p.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--heartbeat-interval=20", "--election-timeout=200",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
	}
}

func (p *Plane) apiFlags() []string {
	dir, address, ports := p.path("pki"), p.place.address(), p.place.ports()
	return []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", ports[1]), fmt.Sprintf("--secure-port=%d", ports[0]),
		"--bind-address=" + address, "--advertise-address=" + address,
		"--service-cluster-ip-range=" + serviceNetwork, "--allow-privileged=true",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + pki.CertFile(dir, "ca"),
		"--tls-cert-file=" + pki.CertFile(dir, "kube-apiserver"),
		"--tls-private-key-file=" + pki.KeyFile(dir, "kube-apiserver"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki.CertFile(dir, "accounts"),
		"--service-account-signing-key-file=" + pki.KeyFile(dir, "accounts"),
		"--kubelet-client-certificate=" + pki.CertFile(dir, "kubelet-client"),
		"--kubelet-client-key=" + pki.KeyFile(dir, "kubelet-client"),
		"--kubelet-certificate-authority=" + pki.CertFile(dir, "ca"),
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// controllerFlags let controllers ask more often than 20 times a second: the service account of a
// namespace would take five seconds.
func (p *Plane) controllerFlags(t hosts.T) []string {
	t.Helper()
	dir := p.path("pki")
	return append(p.clientFlags(t, "system:kube-controller-manager"),
		"--use-service-account-credentials", "--service-account-private-key-file="+pki.KeyFile(dir, "accounts"),
		"--root-ca-file="+pki.CertFile(dir, "ca"), "--allocate-node-cidrs=false",
		"--cluster-signing-cert-file="+pki.CertFile(dir, "ca"), "--cluster-signing-key-file="+pki.KeyFile(dir, "ca"),
		"--node-monitor-period=1s", "--node-monitor-grace-period="+graceTime,
	)
}

func (p *Plane) schedulerFlags(t hosts.T) []string {
	t.Helper()
	return p.clientFlags(t, "system:kube-scheduler")
}

// clientFlags are those of a program that has the cluster to itself, and serves nothing.
func (p *Plane) clientFlags(t hosts.T, user string) []string {
	t.Helper()
	return []string{
		"--kubeconfig=" + p.KubeconfigFor(t, user), "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=300", "--kube-api-burst=500",
	}
}
