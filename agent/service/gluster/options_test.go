package gluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
	p, cmd := pool{ask: o.ask}, service.Command{Verb: glusterd.VerbSet, Object: "v", Params: map[string]string{"a": "1", "bad.x": "1", "bad.y": "1", "c": "2"}}
	err := p.set(t.Context(), cmd)
	for _, name := range []string{"bad.x", "bad.y"} {
		if err == nil || !strings.Contains(err.Error(), "option "+name+" is refused: option : "+name+" does not exist") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if o.options["a"] != "1" || o.options["c"] != "2" || len(o.options) != 3 {
		t.Errorf("%v", o.options)
	}
	cmd.Params = map[string]string{"a": "", "bad.x": "", "z": ""}
	if err := p.reset(t.Context(), cmd); err == nil || len(o.options) != 1 {
		t.Errorf("%v, %v", err, o.options)
	}
}

// Options that are taken are one command, and a glusterd that does not answer is not asked for each.
func TestOptions_together(t *testing.T) {
	for _, silent := range []bool{false, true} {
		o := &optionsOf{options: map[string]string{}, silent: silent}
		err := pool{ask: o.ask}.set(t.Context(), service.Command{Object: "v", Params: map[string]string{"a": "1", "b": "2"}})
		if o.asked != 1 || (err != nil) != silent {
			t.Errorf("silent %v: asked %d times: %v", silent, o.asked, err)
		}
	}
}
