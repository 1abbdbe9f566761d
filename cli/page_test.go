package cli

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPage_isFresh(t *testing.T) {
	for _, name := range []string{"HOLDFAST_DATA_DIR", "HOLDFAST_DEVICE_FILTER"} {
		t.Setenv(name, "")
	}
	have, err := os.ReadFile("../docs/reference/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Page(), string(have)); diff != "" {
		t.Errorf("docs/reference/commands.md is not what the commands say: run 'make generate'\n%s", diff)
	}
}
