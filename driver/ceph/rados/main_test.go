package rados_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

func TestMain(m *testing.M) {
	rados.MaybeServe()
	if os.Getenv(parentEnv) != "" {
		beParent()
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}
