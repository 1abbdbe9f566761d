package stat

import (
	"os"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const line = "42 (a ) b) S 7 42 42 0 -1 4194560 100 200 3 4 150 50 20 10 20 0 4 0 12345 1000000 256 18446744073709551615 1 1"
	got, err := Parse(line)
	want := Usage{Parent: 7, Own: 2 * time.Second, Children: 300 * time.Millisecond, ChildFaults: 204, Resident: 256 * int64(os.Getpagesize())}
	if err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if _, err := Parse("42 (short) S 7"); err == nil {
		t.Error("a line that is cut off was taken")
	}
}

// TestOf checks the fields against the kernel itself: this process has a parent, memory, and uses time.
func TestOf(t *testing.T) {
	for end := time.Now().Add(10 * time.Second); ; {
		u, err := Of(os.Getpid())
		switch {
		case err != nil:
			t.Fatal(err)
		case u.Parent == os.Getppid() && u.Own >= 2*Tick && u.Resident >= 1<<20:
			return
		case time.Now().After(end):
			t.Fatalf("this process is said to have used %+v", u)
		}
	}
}

// TestFilePages: this program is a file, and more than a megabyte of it is in use.
func TestFilePages(t *testing.T) {
	u, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if files, err := FilePages(os.Getpid()); err != nil || files < 1<<20 || files > u.Resident {
		t.Errorf("%d of %d bytes are pages of files (%v)", files, u.Resident, err)
	}
	if _, err := FilePages(-1); err == nil {
		t.Error("a process that is not there has memory")
	}
}
