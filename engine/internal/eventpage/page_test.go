package eventpage

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPage_isFresh(t *testing.T) {
	have, err := os.ReadFile("../../../docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Page(), string(have)); diff != "" {
		t.Errorf("docs/reference/events.md is not what codes.go says: run 'make generate'\n%s", diff)
	}
}
