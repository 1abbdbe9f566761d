package ceph

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// rgwSubject has a stand-in for radosgw-admin and for the gateway; real ones need a cluster (test/e2e TestObjectStore).
func rgwSubject() servicetest.Subject {
	return servicetest.Subject{
		Type: rgw.Type, Install: []string{"apt-get install radosgw"}, Secrets: []string{"very-secret"},
		New: func(t *testing.T) *service.Local {
			l, _ := newGateway(t)
			l = replaceDirs(t, l)
			l.Daemon.Spec.Type = rgw.Type
			for name, text := range map[string]string{rgw.FileZone: rgw.Zone("s3"), rgw.FileZonegroup: rgw.Zonegroup("s3")} {
				if err := os.WriteFile(filepath.Join(l.Data, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l.Parameters[rgw.ParamURL] = "http://" + listener.Addr().String()
			listener.Close()
			return l
		},
		Varies:   []string{"run/serves", "data/serves"}, // they name the port
		StandIns: func(*service.Local) []string { return filepath.SplitList(os.Getenv("PATH"))[:1] },
		Serve: func(t *testing.T, l *service.Local) {
			startGateway(t, l, l.Parameters[rgw.ParamURL])
			listener, err := net.Listen("tcp", strings.TrimPrefix(l.Parameters[rgw.ParamURL], "http://"))
			if err != nil {
				t.Fatal(err)
			}
			server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler()}} //nolint:gosec // a test's
			server.Start()
			t.Cleanup(server.Close)
		},
		Commands: func(*service.Local) []service.Command {
			return []service.Command{userCommand(rgw.VerbUserSet), {Verb: rgw.VerbFindBuckets}, userCommand(rgw.VerbUserRemove, rgw.ParamKeep, "true"), userCommand(rgw.VerbUserRemove)}
		},
	}
}

// mirrorSubject has a stand-in for rbd and for the daemon's socket; real ones need two clusters (test/e2e TestMirror).
func mirrorSubject() servicetest.Subject {
	token := rbdmirror.Token{FSID: "f", ClientID: "c", Key: "k", MonHost: "m"}.Encode()
	return servicetest.Subject{
		Type: rbdmirror.Type, Install: []string{"apt-get install rbd-mirror", "apt-get install ceph-common"}, Secrets: []string{token},
		New: func(t *testing.T) *service.Local {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "rbd"), []byte(strings.Replace(rbdStandIn, "*import*)", "*enable*) ;;\n*import*)", 1)), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", fmt.Sprintf("%s:%s", dir, os.Getenv("PATH")))
			t.Setenv("RBD_LOG", filepath.Join(dir, "log"))
			return local(t, rbdmirror.Type, "dr-a", map[string]string{rbdmirror.ParamPools: "vms"})
		},
		Serve: func(t *testing.T, l *service.Local) { l.Run = answering(t, "{}").Run },
		Commands: func(*service.Local) []service.Command {
			return []service.Command{
				{Verb: rbdmirror.VerbEnable, Params: map[string]string{rbdmirror.ParamPool: "vms", rbdmirror.ParamMode: "image"}},
				{Verb: rbdmirror.VerbImport, Params: map[string]string{rbdmirror.ParamPool: "vms"}, Secret: map[string][]byte{api.SecretEntryToken: []byte(token)}},
			}
		},
	}
}
