package ganesha

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// standIn reads its configuration when it is told, and says so where that says. It refuses a new export at a pseudo path that
// another one has, for good, as NFS-Ganesha does for that reading.
const standIn = `
cd "$0"
reread() {
	log=$(sed -n 's,.*/readings/\([0-9]*\)".*,\1,p' loaded.conf)
	if grep -q "Export_Id = 7" loaded.conf && [ "$served" = 1 ]; then
		echo ':CRIT :Pseudo path (/a) is a duplicate' >>readings/$log
		return
	fi
	served=$(sed -n 's/.*Export_Id = \([0-9]*\);.*/\1/p' loaded.conf)
	echo ':Reread exports complete' >>readings/$log
}
served=1
trap reread HUP
echo
while ! read -r -t 60 x; [ $? -gt 128 ]; do :; done
`

// TestConformance has the service agent pass the suite, and kills it at each place in the code that lasts. It serves by a process that takes signals and tells what it
// has read as the server does: the real server needs the port 2049 of all addresses and a volume (test/e2e TestGlusterNFS). It is Initialize that looks for the real program.
func TestConformance(t *testing.T) {
	code := servicetest.Places(t, ".")
	servicetest.Run(t, servicetest.Subject{
		Agents: Agents(), Type: ganesha.Type, Code: []*failpoint.Points{code}, Install: []string{"apt-get install nfs-ganesha"},
		Varies: []string{"run/" + ganesha.FileLoaded, "run/" + ganesha.DirReadings}, // readings have numbers
		New: func(t *testing.T) *service.Local {
			l := servicetest.Dirs(t)
			l.Daemon.Spec.Type, l.Daemon.Generation = ganesha.Type, 3
			l.Parameters = map[string]string{ganesha.ParamAddress: "127.0.0.1", ganesha.ParamFSAL: "gluster", ganesha.ParamExports: "/none", ganesha.ParamStamp: "stamp"}
			write(t, filepath.Join(l.Data, ganesha.FileConf), conf("7 /a"))
			return l
		},
		Serve: func(t *testing.T, l *service.Local) {
			loads(t, l, conf("1 /a"), 0, complete)
			// As of a process that an earlier version started.
			if err := os.RemoveAll(filepath.Join(l.Run, ganesha.DirReadings)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", standIn, l.Run)
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
			l.PID = int32(cmd.Process.Pid)
		},
		Commands: func(*service.Local) []service.Command { return []service.Command{{Verb: ganesha.VerbReload}} },
	})
	servicetest.Swept(t, code, map[string]string{
		"reload.go reread Write": "the second one is for Daemons of older servers: TestReload_olderServer",
	})
}
