package carrier

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// Pods of two nodes that carry one volume have two names.
func TestName(t *testing.T) {
	v := backend.Volume{Dir: "/var/lib/holdfast/csi/0123456789abcdef"}
	plain, n1, n2 := &Carriers{}, &Carriers{Node: "n1"}, &Carriers{Node: "n2"}
	if plain.Name(v) != "volume-0123456789abcdef" || n1.Name(v) == n2.Name(v) || n1.Name(v) == plain.Name(v) {
		t.Errorf("got %s, %s and %s", plain.Name(v), n1.Name(v), n2.Name(v))
	}
	if most := 63; len(n1.Name(v)) > most {
		t.Errorf("%s has more than %d letters", n1.Name(v), most)
	}
}

func TestNeedFUSE(t *testing.T) {
	if err := needFUSE(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := needFUSE(t.TempDir() + "/fuse"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("got %v", err)
	}
}
