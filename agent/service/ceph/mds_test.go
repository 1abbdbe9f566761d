package ceph

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/cephreport"
)

const sessions = `[
 {"id":2,"state":"open","client_metadata":{"entity_id":"x","hostname":"vm","root":"/"}},
 {"id":1,"state":"open","client_metadata":{"entity_id":"app","hostname":"vm","mount_point":"/mnt","root":"/"}},
 {"id":3,"state":"closed","client_metadata":{"entity_id":"gone"}}]`

// answering is an admin socket that gives one answer.
func answering(t *testing.T, answer string) *service.Local {
	t.Helper()
	return answeringTo(t, "session ls", answer)
}

// answeringTo is answering of a daemon that is asked this question.
func answeringTo(t *testing.T, asked, answer string) *service.Local {
	t.Helper()
	dir, err := os.MkdirTemp("", "mds") // a path for a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "ceph.asok"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			question := make([]byte, 256)
			n, _ := conn.Read(question)
			if want := fmt.Sprintf(`{"format":"json","prefix":%q}`, asked) + "\x00"; string(question[:n]) != want {
				answer = fmt.Sprintf("%q is not %q", question[:n], want)
			}
			size := len(answer)
			_, _ = conn.Write([]byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)})
			_, _ = io.WriteString(conn, answer)
			conn.Close()
		}
	}()
	return &service.Local{Run: dir}
}

func TestMDS_report(t *testing.T) {
	text, err := MDS{}.Report(t.Context(), answering(t, sessions))
	if want := `{"mounts":[{"entity":"app","host":"vm","path":"/mnt"},{"entity":"x","host":"vm"}]}`; err != nil || text != want {
		t.Errorf("%s, %v", text, err)
	}
	r, err := cephreport.Parse(text)
	if err != nil || r.Mounts[0].String() != "client.app on host vm at /mnt" {
		t.Errorf("%+v, %v", r, err)
	}
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"state":"open","client_metadata":{"entity_id":"a"}},`, 40), ",") + "]"
	if text, err := mountReport([]byte(many)); err != nil || !strings.HasSuffix(text, `"more":8}`) {
		t.Errorf("of many: %s, %v", text, err)
	}
	for _, standby := range []string{"", "ERROR: (38) Function not implemented\n"} {
		if text, err := (MDS{}).Report(t.Context(), answering(t, standby)); err != nil || text != "" {
			t.Errorf("of one that stands by: %q, %v", text, err)
		}
	}
	if text, err := (MDS{}).Report(t.Context(), &service.Local{Run: t.TempDir()}); err != nil || text != "" {
		t.Errorf("of one that has only just started: %q, %v", text, err)
	}
}
