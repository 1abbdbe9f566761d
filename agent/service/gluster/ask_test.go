package gluster

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A command waits for its turn, and says in the end what it waited for: then whoever asked asks again.
func TestDo_busy(t *testing.T) {
	for busy, want := range map[time.Duration]string{
		0: "", 30 * time.Second: "", 3 * time.Minute: "the pool is busy with something else, for 40s now: Another transaction is in progress for v. Please try again after some time.",
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			err := do(t.Context(), func(context.Context, ...string) ([]byte, error) {
				if time.Since(start) < busy {
					return []byte("<cliOutput><opRet>-1</opRet><opErrno>30802</opErrno><opErrstr>Another transaction is in progress for v. Please try again after some time.</opErrstr></cliOutput>"), nil
				}
				return []byte("<cliOutput><opRet>0</opRet></cliOutput>"), nil
			}, "volume", "start", "v")
			if text := errorText(err); !strings.HasPrefix(text, want) || (want == "") != (err == nil) {
				t.Errorf("busy for %v: %v", busy, err)
			}
			if took := time.Since(start); took > lockTimeout || took > busy+lockPauseMax {
				t.Errorf("busy for %v: it took %v", busy, took)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
