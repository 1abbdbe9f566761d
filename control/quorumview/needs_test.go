package quorumview_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/control/quorumview"
)

// TestStatus_Needs: a server may be switched off when those that answer, and stay, are a majority of all members.
func TestStatus_Needs(t *testing.T) {
	t.Parallel()
	member := func(name string, voter, answers bool) quorumview.Member {
		return quorumview.Member{Name: name, Voter: voter, Answers: answers}
	}
	s1, s2, s3 := member("s1", true, true), member("s2", true, true), member("s3", true, true)
	for name, tt := range map[string]struct {
		members []quorumview.Member
		stay    string
		want    string
	}{
		"one of three":                     {[]quorumview.Member{s1, s2, s3}, "s1 s2 s3", ""},
		"one of two":                       {[]quorumview.Member{s1, s2}, "s1 s2", "1 of 2 members would be left, and 2"},
		"another is silent":                {[]quorumview.Member{member("s1", true, false), s2, s3}, "s1 s2 s3", "1 of 3"},
		"another was removed and runs yet": {[]quorumview.Member{s1, s2, s3}, "s1 s2", "1 of 3"},
		"a learner does not count":         {[]quorumview.Member{s1, s2, member("s3", false, true)}, "s1 s2 s3", "1 of 2"},
		"it learns":                        {[]quorumview.Member{s1, member("s2", false, true)}, "s1 s2", ""},
		"it is a standby":                  {[]quorumview.Member{s1}, "s1 s2", ""},
		"nobody has looked yet":            {nil, "s1 s2", "to observe its members"},
	} {
		t.Run(name, func(t *testing.T) {
			status := &quorumview.Status{Members: tt.members}
			got := status.Needs("s2", func(name string) bool { return slices.Contains(strings.Fields(tt.stay), name) })
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStatus_Stuck: a seat that a standby takes is waited for; where none can, people are told who is away.
func TestStatus_Stuck(t *testing.T) {
	t.Parallel()
	s1, s2 := quorumview.Member{Name: "s1", Voter: true}, quorumview.Member{Name: "s2", Voter: true, Answers: true}
	s3 := quorumview.Member{Name: "s3", Voter: true, Answers: true}
	for name, tt := range map[string]struct {
		members  []quorumview.Member
		standbys []string
		stay     string
		want     string
	}{
		"nobody has looked yet":      {nil, nil, "s1 s2 s3", ""},
		"a standby waits":            {[]quorumview.Member{s1, s2, s3}, []string{"s4"}, "s1 s2 s3 s4", ""},
		"one waits, and may go too":  {[]quorumview.Member{s1, s2, s3}, []string{"s4"}, "s1 s2 s3", "maintenance: s1)"},
		"one is silent":              {[]quorumview.Member{s1, s2, s3}, nil, "s1 s2 s3", "maintenance: s1)"},
		"another is in maintenance":  {[]quorumview.Member{s1, s2, s3}, nil, "s1 s2", "maintenance: s1, s3)"},
		"of two members both answer": {[]quorumview.Member{s2, s3}, nil, "s2 s3", "it needs each of its members of etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			status := &quorumview.Status{Members: tt.members, Standbys: tt.standbys}
			got := status.Stuck("s2", func(name string) bool { return slices.Contains(strings.Fields(tt.stay), name) })
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
