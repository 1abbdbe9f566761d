package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Plane is a control plane: etcd, kube-apiserver, kube-controller-manager and, where there are
// nodes, kube-scheduler.
type Plane struct {
	// Dir has its certificates, its kubeconfigs, and etcd's data.
	Dir string
	// Kubeconfig is that of an administrator.
	Kubeconfig string

	bin       string
	place     place
	flags     map[string][]string
	authority *pki.Authority
	proxy     string // a kubeconfig
	client    kubernetes.Interface
	api       Process
}

// place is where the programs of a control plane run.
type place interface {
	// address is what kube-apiserver listens on, and port its port; the ports of etcd follow.
	address() string
	ports() [3]int
	// nodes says whether there are nodes, whose pods need a scheduler.
	nodes() bool
	launch(t hosts.T, program string, args ...string) Process
}

// Process is a program of the control plane.
type Process interface {
	PID() int
	Signal(t hosts.T, sig os.Signal)
	// Kill is kill -9, and waits for the end.
	Kill(t hosts.T)
	Done() <-chan struct{}
}

// Masters is the group of administrators, whom RBAC does not bind.
const Masters = "system:masters"

// proxyUser is whom kube-proxy is.
const proxyUser = "system:kube-proxy"

const serviceNetwork, serviceIP = "10.96.0.0/16", "10.96.0.1"

func newPlane(t hosts.T, bin, dir string, at place, flags map[string][]string) *Plane {
	t.Helper()
	p := &Plane{Dir: dir, bin: bin, place: at, flags: flags}
	if err := p.certify(); err != nil {
		t.Fatalf("kube: %v", err)
	}
	p.Kubeconfig = p.KubeconfigFor(t, "admin", Masters)
	p.proxy = p.KubeconfigFor(t, proxyUser)
	client, err := kubernetes.NewForConfig(p.ConfigFor(t, "admin", Masters))
	if err != nil {
		t.Fatalf("kube: %v", err)
	}
	p.client = client
	return p
}

// certify makes the authority and what kube-apiserver proves itself with.
func (p *Plane) certify() (err error) {
	if p.authority, err = pki.NewAuthority(time.Now()); err != nil {
		return err
	}
	if err := os.MkdirAll(p.path("pki"), 0o755); err != nil {
		return fmt.Errorf("while making a directory for certificates: %w", err)
	}
	return errors.Join(p.authority.Save(p.path("pki")),
		p.pair("kube-apiserver", pki.Leaf{
			User: "kube-apiserver", Server: true, DNS: []string{"localhost", "kubernetes.default.svc"},
			IPs: []net.IP{net.ParseIP(p.place.address()), net.ParseIP("127.0.0.1"), net.ParseIP(serviceIP)},
		}),
		p.pair("kubelet-client", pki.Leaf{User: "kube-apiserver-kubelet-client", Groups: []string{Masters}}),
		p.pair("accounts", pki.Leaf{User: "accounts"})) // its key signs the tokens of service accounts
}

func (p *Plane) path(parts ...string) string {
	return filepath.Join(append([]string{p.Dir}, parts...)...)
}

// pair makes a key and a certificate in the directory pki.
func (p *Plane) pair(name string, leaf pki.Leaf) error {
	pair, err := p.authority.NewPair(leaf, time.Now())
	if err != nil {
		return err
	}
	return pair.Save(p.path("pki"), name)
}

// URL is where the API is.
func (p *Plane) URL() string {
	return "https://" + net.JoinHostPort(p.place.address(), strconv.Itoa(p.place.ports()[0]))
}

// KubeconfigFor writes a kubeconfig for a user, whom the API takes for a member of the groups, and
// returns its path.
func (p *Plane) KubeconfigFor(t hosts.T, user string, groups ...string) string {
	t.Helper()
	path := p.path(user + ".kubeconfig")
	pair, err := p.authority.NewPair(pki.Leaf{User: user, Groups: groups}, time.Now())
	if err == nil {
		err = pki.WriteKubeconfig(path, p.URL(), "", p.authority.CertPEM(), pair)
	}
	if err != nil {
		t.Fatalf("kube: while writing a kubeconfig for %s: %v", user, err)
	}
	return path
}

// ConfigFor is KubeconfigFor for clients in Go.
func (p *Plane) ConfigFor(t hosts.T, user string, groups ...string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.KubeconfigFor(t, user, groups...))
	if err != nil {
		t.Fatalf("kube: while reading a kubeconfig: %v", err)
	}
	config.QPS = -1
	return config
}

// Client reaches the API as an administrator.
func (p *Plane) Client() kubernetes.Interface { return p.client }

// start starts everything, and waits until the API serves and pods can be made.
func (p *Plane) start(t hosts.T) {
	t.Helper()
	p.launch(t, "etcd", p.etcdFlags()...)
	p.StartAPIServer(t)
	p.launch(t, "kube-controller-manager", p.controllerFlags(t)...)
	if p.place.nodes() {
		p.launch(t, "kube-scheduler", p.schedulerFlags(t)...)
	}
	await(t, "the default service account", func(ctx context.Context) error {
		_, err := p.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", meta.GetOptions{})
		return err
	})
}

func (p *Plane) launch(t hosts.T, program string, args ...string) Process {
	t.Helper()
	return p.place.launch(t, filepath.Join(p.bin, program), append(args, p.flags[program]...)...)
}

// APIServer is kube-apiserver as it runs, or ran.
func (p *Plane) APIServer() Process { return p.api }

// StopAPIServer kills kube-apiserver. Nodes and their pods keep running.
func (p *Plane) StopAPIServer(t hosts.T) {
	t.Helper()
	p.api.Kill(t)
}

// StartAPIServer starts kube-apiserver, and waits until it is ready.
func (p *Plane) StartAPIServer(t hosts.T) {
	t.Helper()
	p.api = p.launch(t, "kube-apiserver", p.apiFlags()...)
	await(t, "kube-apiserver to be ready", func(ctx context.Context) error {
		select {
		case <-p.api.Done():
			t.Fatalf("kube: kube-apiserver has ended: see its log")
		default:
		}
		_, err := p.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// letProxiesIn lets kube-proxy read what it needs.
func (p *Plane) letProxiesIn(t hosts.T) {
	t.Helper()
	_, err := p.client.RbacV1().ClusterRoleBindings().Create(context.Background(), &rbac.ClusterRoleBinding{
		ObjectMeta: meta.ObjectMeta{Name: "kube-proxy"},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "system:node-proxier"},
		Subjects:   []rbac.Subject{{APIGroup: rbac.GroupName, Kind: "User", Name: proxyUser}},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatalf("kube: while giving kube-proxy its rights: %v", err)
	}
}
