package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// versioned is a service agent whose program says what is set.
type versioned struct {
	service.ServiceAgent
	now string
}

func (v *versioned) Version(context.Context) (string, error) { return v.now, nil }

// Another release is told of when it has been there for a while: one that comes and goes meanwhile is not.
func TestInstalled_whenItStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &versioned{now: "16.2.15"}
		s := &serviceType{agent: v}
		look := func(after time.Duration, says, want string) {
			t.Helper()
			time.Sleep(after)
			v.now = says
			s.asked = time.Time{}
			if got := s.installed(t.Context()); got != want {
				t.Errorf("%s installed is told as %s, not %s", says, got, want)
			}
		}
		look(0, "16.2.15", "16.2.15")
		look(time.Minute, "17.2.7", "16.2.15")
		look(upgradeTime/2, "17.2.7", "16.2.15")
		look(upgradeTime/2, "17.2.8", "17.2.8")
		look(time.Minute, "18.2.1", "17.2.8")
		look(upgradeTime/2, "17.2.8", "17.2.8")
		look(upgradeTime, "18.2.1", "17.2.8")
		look(upgradeTime, "18.2.1", "18.2.1")
	})
}
