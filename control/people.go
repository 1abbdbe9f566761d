package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/holdfast-storage/holdfast/control/pki"
)

// IssueKubeconfig writes a kubeconfig for somebody, with a key that is made for it and lies nowhere else. It reads the authority in the data directory of a
// server, which may run meanwhile, and takes how to reach the API from the administrator's kubeconfig.
func IssueKubeconfig(dir, path, user, group string, lasts time.Duration, now time.Time) (ends time.Time, err error) {
	d := dataDir(dir)
	authority, err := pki.OpenAuthority(d.pki())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ends, fmt.Errorf("there is no authority in %s: run this on a server", d.pki())
	case errors.Is(err, fs.ErrPermission):
		return ends, fmt.Errorf("only root may read the key of the authority: use sudo on a server")
	case err != nil:
		return ends, fmt.Errorf("while reading the authority: %w", err)
	}
	if last := authority.Certificate().NotAfter; now.Add(lasts).After(last) {
		return ends, fmt.Errorf("the authority itself ends on %s: choose a shorter --ttl, or replace it with 'holdfast ca rotate'", last.Format(time.DateOnly))
	}
	admin, err := clientcmd.LoadFromFile(d.adminKubeconfig())
	if err != nil {
		return ends, fmt.Errorf("while reading how the API is reached: %w", err)
	}
	at := admin.Contexts[admin.CurrentContext]
	if at == nil || admin.Clusters[at.Cluster] == nil {
		return ends, fmt.Errorf("%s does not say how the API is reached", d.adminKubeconfig())
	}
	pair, err := authority.Signing(lasts).NewPair(pki.Leaf{User: user, Groups: []string{group}}, now)
	if err != nil {
		return ends, err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return ends, fmt.Errorf("there is a %s already: move it away, or choose another file with -o", path)
	}
	api := admin.Clusters[at.Cluster]
	return pair.Cert.NotAfter, pki.WriteKubeconfig(path, api.Server, api.TLSServerName, api.CertificateAuthorityData, pair)
}
