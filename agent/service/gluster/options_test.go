package gluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// optionsOf is a glusterd that keeps the options of a volume: of several that are given together it takes all or none.
type optionsOf struct {
	options map[string]string
	asked   int
	silent  bool
}

func (o *optionsOf) ask(_ context.Context, args ...string) ([]byte, error) {
	o.asked++
	if o.silent {
		return nil, errors.New("gluster did not answer")
	}
	for _, word := range args[3:] {
		if strings.HasPrefix(word, "bad.") {
			return fmt.Appendf(nil, "<cliOutput><opRet>-1</opRet><opErrstr>option : %s does not exist</opErrstr></cliOutput>", word), nil
		}
	}
	for pair := range slices.Chunk(args[3:], 2) {
		if delete(o.options, pair[0]); args[1] == "set" {
			o.options[pair[0]] = pair[1]
		}
	}
	return []byte("<cliOutput><opRet>0</opRet></cliOutput>"), nil
}

// Options that GlusterFS refuses keep no others from being set, and are named with the reason.
func TestOptions(t *testing.T) {
	o := &optionsOf{options: map[string]string{"z": "9"}}
	l := &service.Local{Run: t.TempDir()}
	p, cmd := pool{ask: o.ask, l: l}, service.Command{
		Verb: glusterd.VerbSet, Object: "v",
		Params: map[string]string{"a": "1", "bad.x": "1", "bad.y": "1", "c": "2"},
	}
	err := p.set(t.Context(), cmd)
	for _, name := range []string{"bad.x", "bad.y"} {
		if err == nil || !strings.Contains(err.Error(), "option "+name+" is refused: option : "+name+" does not exist") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if o.options["a"] != "1" || o.options["c"] != "2" || len(o.options) != 3 {
		t.Errorf("%v", o.options)
	}
	pool := glusterd.Pool{Volumes: []glusterd.Volume{{Name: "v"}, {Name: "w"}}}
	if err := reportRefusals(l.Run, &pool); err != nil {
		t.Fatal(err)
	}
	want := []glusterd.RefusedOption{
		{Name: "bad.x", Value: "1", Text: "option : bad.x does not exist"},
		{Name: "bad.y", Value: "1", Text: "option : bad.y does not exist"},
	}
	if diff := cmp.Diff(want, pool.Volumes[0].Refused); diff != "" || pool.Volumes[1].Refused != nil {
		t.Errorf("reported as refused (-want +got):\n%s", diff)
	}
	cmd.Params = map[string]string{"a": "", "bad.x": "", "z": ""}
	if err := p.reset(t.Context(), cmd); err == nil || len(o.options) != 1 {
		t.Errorf("%v, %v", err, o.options)
	}
}

// TestNoteRefusal: what is taken later is not reported as refused any more; a program that does not
// run says nothing of it.
func TestNoteRefusal(t *testing.T) {
	run := t.TempDir()
	for _, tt := range []struct {
		err  error
		left int
	}{
		{&glusterd.Failure{Text: "invalid\n value"}, 1},
		{errors.New("gluster did not answer"), 1},
		{&glusterd.Failure{Text: "Commit failed on 10.0.0.2"}, 1},
		{nil, 0},
		{&glusterd.Failure{Text: "Commit failed on 10.0.0.2"}, 0},
		{nil, 0},
	} {
		if err := noteRefusal(run, "v", "a.b", "1", tt.err); err != nil {
			t.Fatal(err)
		}
		if now := readRefusals(run)["v"]; len(now) != tt.left || tt.left == 1 && now[0].Text != "invalid value" {
			t.Errorf("after %v: %v", tt.err, now)
		}
	}
}

// Options that are taken are one command, and a glusterd that does not answer is not asked for each.
func TestOptions_together(t *testing.T) {
	for _, silent := range []bool{false, true} {
		o := &optionsOf{options: map[string]string{}, silent: silent}
		err := pool{ask: o.ask, l: &service.Local{Run: t.TempDir()}}.set(t.Context(), service.Command{
			Object: "v",
			Params: map[string]string{"a": "1", "b": "2"},
		})
		if o.asked != 1 || (err != nil) != silent {
			t.Errorf("silent %v: asked %d times: %v", silent, o.asked, err)
		}
	}
}

// TestTellRefusals: what was refused of a volume that is gone is forgotten.
func TestTellRefusals(t *testing.T) {
	run := t.TempDir()
	for _, volume := range []string{"v", "w"} {
		if err := noteRefusal(run, volume, "a.b", "1", &glusterd.Failure{Text: "invalid value"}); err != nil {
			t.Fatal(err)
		}
	}
	pool := glusterd.Pool{Volumes: []glusterd.Volume{{Name: "w"}}}
	if err := reportRefusals(run, &pool); err != nil || len(pool.Volumes[0].Refused) != 1 {
		t.Errorf("%v, %v", err, pool)
	}
	if left := readRefusals(run); len(left) != 1 || len(left["w"]) != 1 {
		t.Errorf("%v", left)
	}
}
