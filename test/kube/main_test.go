package kube

import (
	"os"
	"testing"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

func TestMain(m *testing.M) {
	hosts.MaybeInit()
	os.Exit(m.Run())
}
