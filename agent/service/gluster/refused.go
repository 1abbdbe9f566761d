package gluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// refusals remember, in a file, which options GlusterFS did not take when they were set the last
// time, by volume.
type refusals map[string][]glusterd.RefusedOption

// maxRefusal bounds what is kept of what GlusterFS said.
const maxRefusal = 400

func refusalsFile(run string) string { return filepath.Join(run, "refused-options.json") }

// readRefusals returns none where the file cannot be read: then the leader has the options set once
// more.
func readRefusals(run string) refusals {
	all := refusals{}
	text, err := os.ReadFile(refusalsFile(run))
	if err != nil || json.Unmarshal(text, &all) != nil {
		return refusals{}
	}
	return all
}

// refusalsLock is held by who changes the file.
var refusalsLock sync.Mutex

// noteRefusal records what came of setting an option of a volume: what was said against it, or nil.
// Failures of another kind, such as of a node that is away, say nothing of the option.
func noteRefusal(run, volume, name, value string, err error) error {
	refusalsLock.Lock()
	defer refusalsLock.Unlock()
	all := readRefusals(run)
	was := all[volume]
	now := slices.DeleteFunc(slices.Clone(was), func(r glusterd.RefusedOption) bool { return r.Name == name })
	if failure := (*glusterd.Failure)(nil); errors.As(err, &failure) && failure.OfOption() {
		text := words.Cut(strings.Join(strings.Fields(failure.Error()), " "), maxRefusal)
		now = append(now, glusterd.RefusedOption{Name: name, Value: value, Text: text})
	} else if err != nil {
		return nil
	}
	slices.SortFunc(now, func(a, b glusterd.RefusedOption) int { return strings.Compare(a.Name, b.Name) })
	if slices.Equal(was, now) {
		return nil
	}
	if all[volume] = now; len(now) == 0 {
		delete(all, volume)
	}
	if err := all.write(run); err != nil {
		return fmt.Errorf("while recording what GlusterFS said of option %s: %w", name, err)
	}
	return nil
}

func (all refusals) write(run string) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return atomicfile.Write(refusalsFile(run), text, 0o600)
}

// reportRefusals writes into the volumes of a report what was refused, and forgets what was refused
// of volumes that the pool does not have: another one may get the name.
func reportRefusals(run string, pool *glusterd.Pool) error {
	refusalsLock.Lock()
	defer refusalsLock.Unlock()
	all := readRefusals(run)
	left := refusals{}
	for i := range pool.Volumes {
		v := &pool.Volumes[i]
		if v.Refused = all[v.Name]; v.Refused != nil {
			left[v.Name] = v.Refused
		}
	}
	if len(left) == len(all) {
		return nil
	}
	if err := left.write(run); err != nil {
		return fmt.Errorf("while forgetting the refused options of volumes that are gone: %w", err)
	}
	return nil
}
