package monstore

import (
	"strings"
	"testing"
)

func TestOrder(t *testing.T) {
	for _, way := range []Way{Alone, FromOSDs, Back} {
		want := Order{"3f0c-1", way}
		if got, err := ParseOrder(want.String()); err != nil || got != want {
			t.Errorf("%q reads as %+v, %v", want, got, err)
		}
	}
	for _, bad := range []string{"", "x", "x elsewhere", " alone", "../x alone", "x.y alone"} {
		if o, err := ParseOrder(bad); err == nil {
			t.Errorf("%q reads as %+v", bad, o)
		}
	}
}

func TestState(t *testing.T) {
	for _, tt := range []struct {
		state State
		whole bool
		text  string
	}{
		{State{Joined: true, Version: 7}, true, "whole, as of version 7"},
		{State{Joined: true, Syncing: true, Version: 7}, false, "cut off"},
		{State{Version: 7}, false, "new and empty"},
		{State{Joined: true}, false, "new and empty"},
		{State{Problem: "it is gone", Joined: true, Version: 7}, false, "it is gone"},
	} {
		again, err := Decode(tt.state.Encode())
		if err != nil || again != tt.state || again.Whole() != tt.whole || !strings.Contains(again.String(), tt.text) {
			t.Errorf("%+v: %+v (%s), %v", tt.state, again, again, err)
		}
	}
	if _, err := Decode("not this"); err == nil {
		t.Error("what is no state was read")
	}
}
