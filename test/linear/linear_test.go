package linear

import (
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// played is a history in which each operation ends before the next one begins, given as operation and answer in turn.
func played(steps ...any) *Recording {
	r := Record()
	for i := 0; i < len(steps); i += 2 {
		r.Do(0, steps[i], func() any { return steps[i+1] })
	}
	return r
}

func fits(t *testing.T, what string, want bool, err error) {
	t.Helper()
	if (err == nil) != want {
		t.Errorf("%s: fits %v, want %v: %v", what, err == nil, want, err)
	}
}

func TestRegister(t *testing.T) {
	check := func(steps ...any) error { return Check(played(steps...), Register{}, StepRegister, nil) }
	lead, put := Lead{"a"}, Put{"a", "1"}
	fits(t, "what was written is read", true, check(lead, Done{}, put, Done{}, Get{}, "1"))
	fits(t, "an old value is read", false, check(lead, Done{}, put, Done{}, Get{}, ""))
	fits(t, "a leader of before writes", false, check(lead, Done{}, Lead{"b"}, Done{}, put, Done{}))
	fits(t, "the leader is refused", false, check(lead, Done{}, put, Refused{}))
	fits(t, "a write that nobody heard of is done late", true, check(lead, Done{}, put, Unknown{}, Get{}, "", Get{}, "1"))
	fits(t, "and not undone", false, check(lead, Done{}, put, Unknown{}, Get{}, "1", Get{}, ""))
}

// TestHeard: what nobody read is left out, and what somebody read is not.
func TestHeard(t *testing.T) {
	r := played(Lead{"a"}, Done{}, Put{"a", "1"}, Unknown{}, Put{"a", "2"}, Unknown{}, Put{"a", "3"}, Done{}, Get{}, "2", Get{}, Moot{})
	if n := Heard(r).Count(Any); n != 4 {
		t.Errorf("%d operations are left, want 4", n)
	}
	fits(t, "a write that came late", true, Check(Heard(r), Register{}, StepRegister, nil))
}

func TestVersion(t *testing.T) {
	a, b := Version{"a"}, Version{"b"}
	check := func(steps ...any) error { return Check(played(steps...), 0, StepVersion, VersionOf) }
	fits(t, "newer and newer", true, check(a, int64(3), b, int64(1), a, int64(3), a, int64(5)))
	fits(t, "an older one", false, check(a, int64(3), a, int64(2)))
}

// TestStepWatched: leaders may move an action unseen, by the rules.
func TestStepWatched(t *testing.T) {
	first := Action{Approval: api.ApprovalRequired, Want: api.WantDone}
	granted := Action{State: api.ActionRunning, Approval: api.ApprovalGranted, Want: api.WantDone}
	check := func(steps ...any) error { return Check(played(steps...), first, StepWatched, ActionOf) }
	see, grant, reject := See{"a"}, Wishes("a")[0], Wishes("a")[1]
	fits(t, "it runs when it is granted", true, check(see, first, grant, Done{}, see, granted))
	fits(t, "it runs, and nobody granted it", false, check(see, first, see, granted))
	waits := Action{State: api.ActionPendingApproval, Approval: api.ApprovalGranted, Want: api.WantDone}
	fits(t, "it waits again", false, check(grant, Done{}, see, granted, see, waits))
	fits(t, "it is rejected too late", true, check(grant, Done{}, reject, Denied{}))
	fits(t, "it is refused to be rejected, and was never granted", false, check(reject, Denied{}))
}
