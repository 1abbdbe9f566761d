package glusterd

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// cutOff answers as a glusterd does from the moment on at which the third node is cut off (measured with 10.3): the first question to all nodes
// fails when the node is given up, the next ones go to those that are left. Bricks tell by themselves which of them can be reached.
func cutOff(t *testing.T, status func(asked int) ([]byte, error), deaf bool) Asker {
	dead := bytes.Replace(recorded(t, "heal-summary-rep.xml"), []byte("10.0.0.3:/bricks/rep.1</name>\n        <status>Connected"),
		[]byte("10.0.0.3:/bricks/rep.1</name>\n        <status>Transport endpoint is not connected"), 1)
	asked := map[string]int{}
	return func(_ context.Context, args ...string) ([]byte, error) {
		question := strings.Join(args, " ")
		switch question { // those that are not counted come from several goroutines
		case "volume heal rep info summary":
			if !deaf {
				return dead, nil
			}
		case "volume info all":
			return recorded(t, "volume-info.xml"), nil
		case "peer status":
			if asked[question]++; asked[question] > 1 {
				return recorded(t, "peer-status-node-off.xml"), nil
			}
			return recorded(t, "peer-status.xml"), nil
		case "volume status all":
			asked[question]++
			return status(asked[question])
		case "volume get all cluster.op-version", "volume get all cluster.max-op-version":
			return recorded(t, "global-op-version.xml"), nil
		}
		return nil, errors.New("no answer")
	}
}

// What is told of a pool a node of which was cut off a moment ago: never that bricks serve which cannot be reached, and never that those do not that serve.
func TestGather_cutOff(t *testing.T) {
	silence := func(int) ([]byte, error) { return nil, errors.New("gluster did not answer within 30s") }
	nodeOff := func(int) ([]byte, error) { return recorded(t, "volume-status-node-off.xml"), nil }
	later := func(asked int) ([]byte, error) {
		if asked == 1 {
			return nil, errors.New("exit status 2")
		}
		return nodeOff(asked)
	}
	for name, tt := range map[string]struct {
		status          func(asked int) ([]byte, error)
		deaf            bool         // the bricks do not tell either
		bricks          []BrickState // of the volume rep
		unknown, silent bool
	}{
		"given up before":                  {nodeOff, false, []BrickState{BrickOnline, BrickOnline, BrickUnknown}, false, false},
		"given up meanwhile":               {later, false, []BrickState{BrickOnline, BrickOnline, BrickUnknown}, false, false},
		"not given up":                     {silence, false, []BrickState{BrickOnline, BrickOnline, BrickUnknown}, true, false},
		"not given up, and nothing at all": {silence, true, []BrickState{BrickUnknown, BrickUnknown, BrickUnknown}, true, true},
	} {
		r, err := Gather(t.Context(), cutOff(t, tt.status, tt.deaf), DepthPool)
		if err != nil || r.Problem != "" || r.Pool == nil || (r.MaxOpVersion == 0) != tt.unknown {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		if !r.Peers[0].Connected || r.Peers[1].Connected {
			t.Errorf("%s: the peers are those of before: %+v", name, r.Peers)
		}
		v := r.Pool.Volumes[slices.IndexFunc(r.Pool.Volumes, func(v Volume) bool { return v.Name == "rep" })]
		var states []BrickState
		for _, b := range v.Bricks {
			states = append(states, b.State)
		}
		if !slices.Equal(states, tt.bricks) || (v.Unknown != "") != tt.unknown || v.Silent != tt.silent {
			t.Errorf("%s: %q, silent %v, %s", name, states, v.Silent, v.Unknown)
		}
	}
}

// Volumes with a brick that cannot be reached are asked while the pool is, and not one after the other: a report has 30 s.
func TestAskAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, slow := time.Now(), func(_ context.Context, args ...string) ([]byte, error) {
			time.Sleep(10 * time.Second)
			return []byte(strings.Join(args, " ")), nil
		}
		var questions [][]string
		for range healsAtOnce {
			questions = append(questions, []string{"heal", strings.Repeat("v", len(questions)+1)})
		}
		ask := askAhead(t.Context(), slow, questions)
		for _, q := range append(questions, []string{"status"}) {
			if out, err := ask(t.Context(), q...); err != nil || string(out) != strings.Join(q, " ") {
				t.Errorf("%v: %s, %v", q, out, err)
			}
		}
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("%d questions at once and one after them took %v", healsAtOnce, took)
		}
	})
}
