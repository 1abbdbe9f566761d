package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/holdfast-storage/holdfast/control/quorumview"
)

// worst is the worst finding of a check.
func worst(found []Finding) Finding {
	for _, level := range []Level{Fail, Warn} {
		for _, f := range found {
			if f.Level == level {
				return f
			}
		}
	}
	return Finding{Level: OK}
}

// TestServers: a server is called failed only where it is, and to remove its host is advised only
// where its machine does not answer.
func TestServers(t *testing.T) {
	t.Parallel()
	const gone = "host remove s2 --gone"
	late := &timeoutError{}
	for name, tt := range map[string]struct {
		server  Server
		problem string
		level   Level
		says    string
		gone    bool
	}{
		"it is well": {Server{Reached: true, Took: time.Second}, "", OK, "", false},
		"it is slow": {
			Server{Reached: true, Took: 12 * time.Second},
			"", Warn,
			"ready and slow", false,
		},
		"it hangs": {
			Server{Reached: true, Err: late},
			"", Warn,
			"systemctl restart holdfast", false,
		},
		"it does not run": {
			Server{Reached: true, Err: errors.New("refused")},
			"", Warn,
			"systemctl start holdfast", false,
		},
		"its machine is off":                {Server{Err: errors.New("no route")}, "", Warn, "switch its machine on", true},
		"its member is bad and it is ready": {Server{Reached: true}, "does not answer", Warn, "its server is ready", false},
		"its member is bad and it is stopped": {
			Server{Reached: true, Err: errors.New("refused")},
			"does not answer",
			Warn, "start it", false,
		},
		"its member is bad and it is off": {
			Server{Err: errors.New("no route")},
			"does not answer", Warn,
			"switch its machine on", true,
		},
	} {
		tt.server.Name, tt.server.Address = "s2", "10.0.0.2:7440"
		f := &Facts{Servers: []Server{{Name: "s1"}, tt.server, {Name: "s3"}}, Quorum: &quorumview.Status{
			Spare: 1, Members: []quorumview.Member{{Name: "s1", Voter: true}, {
				Name: "s2", Voter: true,
				Problem: tt.problem,
			}, {Name: "s3", Voter: true}},
		}}
		got := worst(checkQuorum(f))
		text := got.Message + " " + got.Remedy
		if got.Level != tt.level || !strings.Contains(text, tt.says) || strings.Contains(text, gone) != tt.gone {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

type timeoutError struct{}

func (*timeoutError) Error() string   { return "context deadline exceeded" }
func (*timeoutError) Unwrap() error   { return context.DeadlineExceeded }
func (*timeoutError) Timeout() bool   { return true }
func (*timeoutError) Temporary() bool { return true }

// TestAPI_refused: servers that refuse a certificate run, and the certificate is what has to be mended.
func TestAPI_refused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ended := func(path string) Local {
		return Local{Certificates: []Certificate{{path, now.Add(-48 * time.Hour), now.Add(-time.Hour), false}}}
	}
	for name, tt := range map[string]struct {
		facts      Facts
		says, next string
	}{
		"the kubeconfig has ended": {
			Facts{Unreachable: apierrors.NewUnauthorized("Unauthorized"), Local: ended("kubeconfig")},
			"the certificate of the kubeconfig, which ended at 2026-01-02T02:04:05Z", "holdfast kubeconfig create",
		},
		"it is of another authority": {
			Facts{Unreachable: apierrors.NewUnauthorized("Unauthorized")}, "'holdfast ca rotate'", "holdfast kubeconfig create",
		},
		"the certificate of the host has ended": {
			Facts{
				AsHost: true, Role: "agent", Unreachable: errors.New("no kubeconfig"), Servers: []Server{{
					Refuses: true,
					Err:     errRefused,
				}},
				Local: ended("/var/lib/holdfast/host/host.crt"),
			},
			"the certificate of this host, which ended at", "holdfast agent --join TOKEN",
		},
	} {
		tt.facts.Now = now
		got := checkAPI(&tt.facts)
		if len(got) != 1 || got[0].Level != Fail || !strings.Contains(got[0].Message, tt.says) ||
			!strings.Contains(got[0].Remedy, tt.next) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
