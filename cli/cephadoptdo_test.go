package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestKeptEntries adopts again what Holdfast has in part already: the key of devices that it has encrypted is nowhere else.
func TestKeptEntries(t *testing.T) {
	have := map[string][]byte{"key": []byte("old"), api.KeyLUKS: []byte("mine"), "other": nil}
	want := map[string][]byte{"key": []byte("new"), "keyring": []byte("k"), api.KeyLUKS: []byte("mine"), "other": nil}
	for _, theirs := range []map[string][]byte{{"key": []byte("new"), "keyring": []byte("k")}, {"key": []byte("new"), "keyring": []byte("k"), api.KeyLUKS: []byte("theirs")}} {
		if diff := cmp.Diff(want, keptEntries(have, theirs)); diff != "" {
			t.Error(diff)
		}
	}
	if got := string(keptEntries(map[string][]byte{}, map[string][]byte{api.KeyLUKS: []byte("theirs")})[api.KeyLUKS]); got != "theirs" {
		t.Error(got)
	}
}
