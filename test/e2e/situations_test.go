package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-storage/holdfast/cli/why"
	"github.com/holdfast-storage/holdfast/test/situations"
)

// tells waits until 'holdfast why' answers for a situation of the table with its reason and its next step. The
// names are pairs of an example's name in the table and the name in this test, as for strings.NewReplacer.
func (b *bed) tells(situation string, names ...string) {
	b.Helper()
	s := situations.Get(situation)
	with := strings.NewReplacer(names...)
	ask := strings.Fields(with.Replace(s.Ask))[1:]
	b.await("the cause of "+situation, func() error {
		var a why.Answer
		out, err := b.Holdfast(append(ask, "-o", "json")...)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			return err
		}
		if a.Reason != s.Reason || !strings.Contains(a.Next, with.Replace(s.Next)) {
			return fmt.Errorf("the answer to %q is %s: %s\nNext: %s", ask, a.Reason, a.Text, a.Next)
		}
		b.Logf("%s: %s\n%s", situation, strings.Join(ask, " "), a)
		return nil
	})
}
