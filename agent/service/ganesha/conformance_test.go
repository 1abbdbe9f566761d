package ganesha

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// TestConformance has the service agent pass the suite, and kills it at each place in the code that lasts. It serves by a process that takes signals: the
// real server needs the port 2049 of all addresses and a volume (test/e2e TestGlusterNFS). It is Initialize that looks for the real program.
func TestConformance(t *testing.T) {
	code := servicetest.Places(t, ".")
	servicetest.Run(t, servicetest.Subject{
		Agents: Agents(), Type: ganesha.Type, Code: []*failpoint.Points{code}, Install: []string{"apt-get install nfs-ganesha"},
		New: func(t *testing.T) *service.Local {
			l := servicetest.Dirs(t)
			l.Daemon.Spec.Type, l.Daemon.Generation = ganesha.Type, 3
			l.Parameters = map[string]string{ganesha.ParamAddress: "127.0.0.1", ganesha.ParamFSAL: "gluster", ganesha.ParamExports: "/none"}
			write(t, filepath.Join(l.Data, ganesha.FileConf), "new")
			return l
		},
		Serve: func(t *testing.T, l *service.Local) {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", "trap '' HUP; echo; read x")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
			if _, err := out.Read(make([]byte, 1)); err != nil { // it listens to signals
				t.Fatal(err)
			}
			write(t, filepath.Join(l.Run, "ganesha.pid"), strconv.Itoa(cmd.Process.Pid))
		},
		Commands: func(*service.Local) []service.Command { return []service.Command{{Verb: ganesha.VerbReload}} },
	})
	servicetest.Swept(t, code, nil)
}
