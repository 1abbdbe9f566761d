package glusterd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOfOption(t *testing.T) {
	out, err := os.ReadFile(filepath.Join("testdata", "set-unknown.xml"))
	if err != nil {
		t.Fatal(err)
	}
	failure := (*Failure)(nil)
	if !errors.As(Result(out), &failure) || !failure.OfOption() {
		t.Errorf("%v", failure)
	}
	for text, want := range map[string]bool{
		`invalid time format "soon" in "option ping-timeout"`:                                        true,
		"'99' in 'option event-threads' is out of range [1 - 32]":                                    true,
		"option a b: 'x' is not valid (possible options are x, y.)":                                  true,
		"option stat-prefetch perhaps: 'perhaps' is not a valid boolean value":                       true,
		"Staging failed on 10.0.0.2. Error: option : a.b does not exist":                             true,
		"Volume v does not exist":                                                                    false,
		"Staging failed on 10.0.0.2. Please check log file for details.":                             false,
		"Commit failed on 10.0.0.2. Please check log file for details.":                              false,
		"One of the client 10.0.0.9:1 is running with op-version 3 and doesn't support the feature.": false,
		"Set volume unsuccessful":                                                                    false,
		"option: a.b op-version mismatch":                                                            false,
		"Quorum not met. Volume operation not allowed.":                                              false,
		"Changing 'storage.linux-aio' is not supported when the volume is in started state":          false,
		"Another transaction is in progress for v. Please try again after some time.":                false,
	} {
		if got := (&Failure{Text: text}).OfOption(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
