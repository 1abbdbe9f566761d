package listener

import (
	"net"
	"os"
	"strconv"
	"testing"
)

func TestOf(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if name, pid, err := Of(port); err != nil || pid != os.Getpid() || name == "" {
		t.Errorf("%s %d: %v", name, pid, err)
	}
	l.Close()
	if name, pid, err := Of(port); err == nil {
		t.Errorf("after its end: %s %d", name, pid)
	}
	if _, _, err := Of("70000"); err == nil {
		t.Error("70000 is a port")
	}
}
