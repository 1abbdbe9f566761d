package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

const storeType = "ceph-rgw"

func storeYAML(name string, lines ...string) string {
	return fmt.Sprintf("---\napiVersion: holdfast.io/v1alpha1\nkind: ObjectStore\nmetadata: {name: %s}\nspec:\n  cluster: ceph\n  %s\n", name, strings.Join(lines, "\n  "))
}

func userYAML(name string, lines ...string) string {
	return fmt.Sprintf("---\napiVersion: holdfast.io/v1alpha1\nkind: ObjectStoreUser\nmetadata: {name: %s}\nspec:\n  cluster: ceph\n  store: s3\n  %s\n", name, strings.Join(lines, "\n  "))
}

// gatewaysOn are the lines of a store that has two gateways on these hosts.
const gatewaysOn = "gateways: {placement: {count: 2, hosts: [h2, h3, h4]}%s}"

// TestObjectStore has two clients use S3, a stock Go library's and s3cmd, while a gateway is killed, a host is drained and TLS is turned on;
// users come, reach their quota and go; and what cannot be is refused.
func TestObjectStore(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 4, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	b.StartAgent(t, 4, b.Token(t, "agent"))
	b.AwaitHosts(t, 4)
	wanted := home.SpecFor(lab, 3, 3, 1)
	delete(wanted.Devices, lab.Host(4).Name)
	wanted.Interval = "2s"
	spec := strings.Replace(wanted.YAML(), "mgr: {count: 3}", "mgr: {count: 3, hostSelector: {}}", 1) // also on h4, which has no StorageNode
	b.mustApply(spec + storeYAML("s3", fmt.Sprintf(gatewaysOn, "")) + userYAML("app", "deletionPolicy: Wipe"))
	c := b.newS3Client(1, "app")
	certificate := b.certificate("cert", "h2", "h3", "h4") // the client trusts it from its start
	c.start(b)
	for _, step := range []struct {
		name string
		do   func(*bed)
	}{
		{"a user reaches its quota", (*bed).userQuota}, // for half a minute after a gateway was killed radosgw-admin waits for it
		{"a gateway is killed", (*bed).gatewayKilled},
		{"a host with a gateway loses its power", (*bed).gatewayLost},
		{"a host is drained", (*bed).gatewayDrained},
		{"TLS is turned on", func(b *bed) { b.gatewaysTLS(certificate) }},
		{"what cannot be is refused", (*bed).storesRefused},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			b := &bed{t, b.Home}
			step.do(b)
			c.goesOn(t)
		}) {
			t.FailNow()
		}
	}
	b.storeDeleted(c)
	b.noOrphans()
}

func (b *bed) store(name string) api.ObjectStore {
	b.Helper()
	s, err := read[api.ObjectStore](b, 1, "objectstores", name)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// awaitStore waits until a store is well.
func (b *bed) awaitStore(name string) {
	b.Helper()
	b.await("the store to be well", func() error {
		if s := b.store(name).Status; s.State != api.ResourceOnline {
			return fmt.Errorf("%s, %s: %s", s.State, s.Gateways, s.Message)
		}
		return nil
	})
}

// gateways are the Daemons of gateways.
func (b *bed) gateways() []api.Daemon {
	b.Helper()
	return slices.DeleteFunc(b.daemons(), func(d api.Daemon) bool { return d.Spec.Type != storeType })
}

// s3Keys are the keys of a user.
func (b *bed) s3Keys(user string) (access, secret string) {
	b.Helper()
	s, err := read[corev1.Secret](b, 1, "secrets", "ceph-s3-"+user)
	if err != nil {
		b.Fatal(err)
	}
	return string(s.Data["accessKey"]), string(s.Data["secretKey"])
}

// newS3Client makes a client with the keys of a user, who knows each host where there may be a gateway, with TLS and without.
func (b *bed) newS3Client(host int, user string) *client {
	b.Helper()
	c := b.newClient(host, "s3")
	program := c.dir() + "/s3client" // hosts have a /tmp of their own
	build := exec.Command("go", "build", "-o", c.host.Path(program), ".")
	build.Dir, build.Env = "../s3client", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("making the client: %v\n%s", err, out)
	}
	var endpoints []string
	for _, h := range b.Lab.Hosts()[1:] {
		endpoints = append(endpoints, "http://"+h.IP+":7480", "https://"+h.IP+":7480")
	}
	access, secret := b.s3Keys(user)
	c.command = []string{
		"env", "AWS_ACCESS_KEY_ID=" + access, "AWS_SECRET_ACCESS_KEY=" + secret, program, c.dir(), strings.Join(endpoints, ","), "app-bucket",
	}
	return c
}

// s3cmd runs s3cmd with the keys of a user at the first endpoint of the store, and returns what it says.
func (b *bed) s3cmd(access, secret string, args ...string) (string, bool) {
	b.Helper()
	return b.s3cmdAt(b.store("s3").Status.Endpoints[0], access, secret, args...)
}

// s3cmdAt runs s3cmd with one gateway.
func (b *bed) s3cmdAt(endpoint, access, secret string, args ...string) (string, bool) {
	b.Helper()
	scheme, at, _ := strings.Cut(endpoint, "://")
	conf := fmt.Sprintf("[default]\naccess_key = %s\nsecret_key = %s\nhost_base = %s\nhost_bucket = %s\nuse_https = %v\ncheck_ssl_certificate = True\nca_certs_file = /var/lib/client-s3/ca.pem\n",
		access, secret, at, at, scheme == "https")
	h := b.Lab.Host(1)
	if err := os.WriteFile(h.Path("/var/lib/client-s3/s3.cfg"), []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	out, err := h.Command(ctx, "s3cmd", append([]string{"-c", "/var/lib/client-s3/s3.cfg"}, args...)...).CombinedOutput()
	return string(out), err == nil
}

// gatewayKilled kills a gateway, which comes back while the other one serves.
func (b *bed) gatewayKilled() {
	d := b.gateways()[0]
	b.hostNamed(d.Spec.Host).Run(b, context.Background(), "kill", "-9", strconv.Itoa(int(d.Status.PID)))
	b.await("the gateway to be back", func() error {
		now := b.daemon(d.Name)
		if now.Status.Restarts == 0 || now.Status.State != api.DaemonRunning {
			return fmt.Errorf("%s, %d restarts", now.Status.State, now.Status.Restarts)
		}
		return nil
	})
	b.awaitStore("s3")
}

// gatewayLost takes the power of a host with a gateway and the active mgr away: other hosts get both in its place, without a word of anybody. When the
// power is back all stay for a while.
func (b *bed) gatewayLost() {
	const number = 4
	h := b.Lab.Host(number)
	pid := func(host string) int32 { // of the gateway that a host has, by the last word of its agent
		for _, d := range b.gateways() {
			if d.Spec.Host == host && d.Status.State == api.DaemonRunning {
				return d.Status.PID
			}
		}
		return 0
	}
	before := pid(h.Name)
	if before == 0 {
		b.Fatalf("host %s has no gateway", h.Name)
	}
	b.activeMgrOn(h.Name)
	h.PowerOff(b)
	off := time.Now()
	b.awaitFor(2*home.Limit, "a gateway in the place of the lost one", func() error {
		if s := b.store("s3").Status; pid("h2") == 0 || pid("h3") == 0 {
			return fmt.Errorf("%s, %s: %s; at %v", s.State, s.Gateways, s.Message, s.Endpoints)
		}
		return nil
	})
	b.await("as many mgrs as are wanted, without the host", func() error { return b.mgrsWithout(h.Name, 3) })
	b.Logf("%.1f s after the power was lost all mgrs are there: %+v", time.Since(off).Seconds(), b.mgrs())
	if out := b.run("get", "daemons"); !strings.Contains(out, "last reported Running; host "+h.Name+" is disconnected for") {
		b.Errorf("holdfast get daemons says of a host that is off:\n%s", out)
	}
	h.PowerOn(b)
	b.StartAgent(b, number, "")
	b.await("the gateway of the host to be back", func() error {
		if now := pid(h.Name); now == 0 || now == before {
			return fmt.Errorf("it was process %d, and is %d", before, now)
		}
		return nil
	})
	b.awaitStore("s3")
}

// gatewayDrained drains a host with a gateway, which another host gets before it goes.
func (b *bed) gatewayDrained() {
	b.holdfast(0, "host", "drain", "h4", "--wait")
	for _, d := range b.gateways() {
		if d.Spec.Host == "h4" {
			b.Errorf("%s is on a host that was drained", d.Name)
		}
	}
	b.awaitStore("s3")
	if s := b.store("s3").Status; s.Gateways != "2/2" {
		b.Errorf("%+v", s)
	}
}

// userQuota has a user reach its quotas, go on when they are unset, and lose all access when it is deleted.
func (b *bed) userQuota() {
	b.mustApply(userYAML("small", "quota: {maxBuckets: 1, maxObjects: 2}"))
	access, secret := b.s3Keys("small")
	const big = "/var/lib/client-s3/big"
	data := make([]byte, 6<<20)
	if _, err := rand.Read(data); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(b.Lab.Host(1).Path(big), data, 0o600); err != nil {
		b.Fatal(err)
	}
	says := func(want string, args ...string) {
		b.Helper()
		if out, ok := b.s3cmd(access, secret, args...); want == "" && !ok || !strings.Contains(out, want) {
			b.Errorf("s3cmd %s: %v, and not %q: %s", strings.Join(args, " "), ok, want, out)
		}
	}
	says("", "mb", "s3://small-bucket")
	says("TooManyBuckets", "mb", "s3://small-other")
	says("", "put", big, "s3://small-bucket/o1")
	says("", "put", big, "s3://small-bucket/o2")
	says("QuotaExceeded", "put", big, "s3://small-bucket/o3")
	says("", "get", "s3://small-bucket/o1", big+".read")
	if read, err := os.ReadFile(b.Lab.Host(1).Path(big + ".read")); err != nil || !bytes.Equal(read, data) {
		b.Errorf("what is read differs from what was written: %v", err)
	}
	b.mustApply(userYAML("small", "deletionPolicy: Wipe"))
	says("", "put", big, "s3://small-bucket/o3")
	says("", "mb", "s3://small-other")
	b.deleteNamed("objectstoreuser", "small")
	b.await("the deletion to wait for buckets", func() error {
		u, err := read[api.ObjectStoreUser](b, 1, "objectstoreusers", "small")
		if err == nil && !strings.Contains(u.Status.Message, "it has 2 buckets (small-bucket, small-other)") {
			err = fmt.Errorf("%s: %s", u.Status.State, u.Status.Message)
		}
		return err
	})
	says("", "rb", "--recursive", "--force", "s3://small-bucket", "s3://small-other")
	b.await("the user to be gone", func() error {
		if left := list[api.ObjectStoreUser](b, "objectstoreusers"); len(left) != 1 {
			return fmt.Errorf("there are %d", len(left))
		}
		return nil
	})
	for _, endpoint := range b.store("s3").Status.Endpoints { // each gateway keeps users in memory
		if out, ok := b.s3cmdAt(endpoint, access, secret, "ls"); ok || !strings.Contains(out, "InvalidAccessKeyId") {
			b.Errorf("with the keys of a user that is gone, %s lets in: %s", endpoint, out)
		}
	}
}

// gatewaysTLS has the gateways speak HTTPS, one after the other.
func (b *bed) gatewaysTLS(certificate string) {
	before := b.gateways()
	if out, code := b.apply(1, certificate); code != 0 {
		b.Fatalf("applying the certificate ended with %d:\n%s", code, out)
	}
	b.mustApply(storeYAML("s3", fmt.Sprintf(gatewaysOn, ", tls: {secretName: cert}")))
	b.await("all gateways to speak HTTPS", func() error {
		for _, d := range before {
			now := b.daemon(d.Name)
			if now.Status.PID == d.Status.PID || now.Status.State != api.DaemonRunning {
				return fmt.Errorf("%s is %s, process %d", d.Name, now.Status.State, now.Status.PID)
			}
		}
		return nil
	})
	started := b.gateways()
	b.awaitStore("s3")
	for _, d := range started {
		if now := b.daemon(d.Name); now.Status.PID != d.Status.PID {
			b.Errorf("%s was restarted more than once: process %d, then %d", d.Name, d.Status.PID, now.Status.PID)
		}
	}
	access, secret := b.s3Keys("app")
	if out, ok := b.s3cmd(access, secret, "ls"); !ok || !strings.Contains(out, "s3://app-bucket") {
		b.Errorf("s3cmd by HTTPS: %s", out)
	}
	for _, endpoint := range b.store("s3").Status.Endpoints {
		out, err := b.Lab.Host(1).Command(b.Context(), "curl", "-sS", "--max-time", "10", "--cacert", "/var/lib/client-s3/ca.pem", endpoint).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ListAllMyBucketsResult") || !strings.HasPrefix(endpoint, "https://") {
			b.Errorf("%s: %v, %s", endpoint, err, out)
		}
	}
}

// certificate is a Secret with a certificate for hosts, which the clients trust.
func (b *bed) certificate(name string, of ...string) string {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "s3"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(100 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	for _, host := range of {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(b.hostNamed(host).IP))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		b.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		b.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(b.Lab.Host(1).Path("/var/lib/client-s3/ca.pem"), text, 0o600); err != nil {
		b.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ntype: kubernetes.io/tls\ndata: {tls.crt: %s, tls.key: %s}\n", name,
		encoded(text), encoded(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
}

// storesRefused declares what cannot be: nothing is made, and whoever waits is told why.
func (b *bed) storesRefused() {
	d := b.gateways()[0]
	out, err := b.hostNamed(d.Spec.Host).Command(b.Context(), "bash", "-c",
		"cd /var/lib/holdfast/agent/daemons/default."+d.Name+"/data && radosgw-admin -c ceph.conf -n client.rgw."+d.Spec.ID+
			" --admin-socket= user create --uid taken --display-name Taken 2>/dev/null").Output()
	var made struct {
		Keys []struct {
			Access string `json:"access_key"`
			Secret string `json:"secret_key"`
		}
	}
	if err != nil || json.Unmarshal(out, &made) != nil || len(made.Keys) != 1 {
		b.Fatalf("making a user by hand: %v, %s", err, out)
	}
	for _, tt := range []struct{ manifest, want string }{
		{userYAML("taken"), "the store has a user taken already, with a key that was not made here (" + made.Keys[0].Access + ")"},
		{storeYAML("bad", "gateways: {placement: {hosts: [h2, h3]}}"), "port 7480 is in use on each host that may run a gateway, such as h2 (ObjectStore s3), h3 (ObjectStore s3)"},
		{storeYAML("bad", "gateways: {port: 7481, tls: {secretName: none}}"), "Secret none of type kubernetes.io/tls does not exist"},
		{storeYAML("bad", "data: {erasureCoded: {dataChunks: 3, codingChunks: 1}, failureDomain: host}"), "it needs 4 hosts with OSDs"},
		{storeYAML("bad", "metadata: {erasureCoded: {dataChunks: 2, codingChunks: 1}}"), "metadata cannot be erasureCoded"},
		{userYAML("bad", "capabilities: {everything: read}"), "capabilities concern users, buckets"},
	} {
		out, code := b.apply(1, tt.manifest, "--wait", "--timeout", "30s")
		if code != 3 || !strings.Contains(out, tt.want) {
			b.Errorf("holdfast apply of %s ended with %d, and not for %q:\n%s", tt.manifest, code, tt.want, out)
		}
		// What is refused refuses the cluster, for whoever waits for something else too.
		if made := regexp.MustCompile(`(objectstore|objectstoreuser)/(\w+) created`).FindStringSubmatch(out); made != nil {
			b.holdfast(0, "delete", made[1], made[2])
		}
	}
	if out, ok := b.s3cmd(made.Keys[0].Access, made.Keys[0].Secret, "ls"); !ok {
		b.Errorf("a user that was made by hand was harmed: %s", out)
	}
}

// storeDeleted deletes the store with its data, which has to be named, and waits for its users and their buckets.
func (b *bed) storeDeleted(c *client) {
	b.Helper()
	b.mustApply(storeYAML("s3", "deletionPolicy: Wipe", fmt.Sprintf(gatewaysOn, ", tls: {secretName: cert}")))
	b.deleteNamed("objectstore", "s3")
	c.goesOn(b.T)
	b.awaitStoreSays("deletion waits for the deletion of 1 ObjectStoreUser (app)")
	c.end(b.T)
	b.deleteNamed("objectstoreuser", "app")
	access, secret := b.s3Keys("app")
	if out, ok := b.s3cmd(access, secret, "rb", "--recursive", "--force", "s3://app-bucket"); !ok {
		b.Errorf("emptying the bucket: %s", out)
	}
	b.await("the store to be gone", func() error {
		if out := b.ceph("osd", "pool", "ls"); strings.Contains(out, "rgw") {
			return fmt.Errorf("pools: %s", out)
		}
		if left := list[api.ObjectStore](b, "objectstores"); len(left) > 0 {
			return fmt.Errorf("%+v", left[0].Status)
		}
		return nil
	})
}

// deleteNamed deletes what is lost by it, which is refused until its plan is named.
func (b *bed) deleteNamed(kind, name string) {
	b.Helper()
	out, code := b.holdfastSays("delete", kind, name)
	plan := regexp.MustCompile(`--plan (plan-[0-9a-f]+)`).FindStringSubmatch(out)
	if code != 3 || plan == nil {
		b.Fatalf("holdfast delete ended with %d:\n%s", code, out)
	}
	b.holdfast(0, "delete", "--plan", plan[1], "--wait=false")
}

func (b *bed) awaitStoreSays(want string) {
	b.Helper()
	b.await("the store to say "+want, func() error {
		if s := b.store("s3").Status; !strings.Contains(s.Message, want) {
			return fmt.Errorf("%s: %s", s.State, s.Message)
		}
		return nil
	})
}
