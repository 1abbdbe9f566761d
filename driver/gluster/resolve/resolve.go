// Package resolve is the action by which a person says which copy of files in split-brain is right.
package resolve

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Kind is the kind of Actions by which a person says which copy of files in split-brain is right.
// The Action lies in the namespace of its cluster; its target is "volume/<name>".
const Kind = "volume.resolve-split-brain"

// Most is how many files in split-brain a status names.
const Most = 32

// The parameters of an Action of Kind.
const (
	// Files are paths within the volume, joined by newlines.
	Files = "files"
	// Keep is "latest-mtime", "bigger-file", or the StorageNode whose copy is right.
	Keep = "keep"
)

// Resolver carries out Actions of Kind.
type Resolver struct{ Store engine.Store }

var _ action.Handler = Resolver{}

// Kind implements action.Handler.
func (Resolver) Kind() action.Kind {
	return action.Kind{
		Name: Kind, Executor: api.ByLeader, Mode: action.Shared, Steps: []string{"resolve"}, Final: true,
		Timeout: 10 * time.Minute,
		Summary: "keeps the copy of files in split-brain that a user chose, and heals the others from it",
	}
}

// Check implements action.Handler.
func (r Resolver) Check(ctx context.Context, a *api.Action) error {
	_, _, err := r.command(ctx, a)
	return err
}

// Step implements action.Handler. What gluster says against it ends the action: a person has to
// choose otherwise.
func (r Resolver) Step(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	daemon, cmd, err := r.command(ctx, a)
	if err != nil {
		return action.Progress{}, err
	}
	short, cancel := context.WithTimeout(ctx, action.CommandTimeout)
	defer cancel()
	if _, err := r.Store.Ask(short, daemon, cmd); err != nil {
		if ctx.Err() != nil {
			return action.Progress{}, err // the next leader does it again
		}
		return action.Progress{}, fmt.Errorf("%w: %w", action.ErrRefused, err)
	}
	return action.Progress{Done: true, Message: fmt.Sprintf("the copies are healed from the one that was chosen "+
		"(%s): %s",
		a.Spec.Parameters[Keep], words.Few(filesOf(a)))}, nil
}

// Undo implements action.Handler. It is not called for a kind of which nothing can be taken back.
func (Resolver) Undo(context.Context, *api.Action, string) (action.Progress, error) {
	return action.Progress{Done: true}, nil
}

// command is what the agent of a node is asked for, or the reason why it cannot be.
func (r Resolver) command(ctx context.Context, a *api.Action) (*api.Daemon, engine.Command, error) {
	view, err := r.Store.View(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Cluster})
	if errors.Is(err, engine.ErrNotFound) {
		return nil, engine.Command{}, refusef("there is no StorageCluster %s in namespace %s", a.Spec.Cluster,
			a.Namespace)
	}
	if err != nil {
		return nil, engine.Command{}, err
	}
	return resolveCommand(view, a)
}

func refusef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", action.ErrRefused, fmt.Sprintf(format, args...))
}

func filesOf(a *api.Action) []string {
	return strings.Split(string(a.Spec.Parameters[Files]), "\n")
}

// resolveCommand is pure.
func resolveCommand(view *engine.View, a *api.Action) (*api.Daemon, engine.Command, error) {
	name, keep := strings.TrimPrefix(a.Spec.Target, "volume/"), string(a.Spec.Parameters[Keep])
	cmd := engine.Command{Verb: glusterd.VerbResolve, Object: name, Line: "volume/" + name, Params: map[string]string{}}
	volumes := engine.OfKind[*api.Volume](view.Resources)
	i := slices.IndexFunc(volumes, func(v *api.Volume) bool { return v.Name == name })
	if i < 0 {
		return nil, cmd, refusef("cluster %s has no volume %q", a.Spec.Cluster, a.Spec.Target)
	}
	v := volumes[i]
	var files []string
	for _, file := range filesOf(a) {
		file = strings.Trim(file, "<>")
		if why := notSplit(v, file); why != "" {
			return nil, cmd, refusef("%s", why)
		}
		files = append(files, file)
	}
	cmd.Params[glusterd.ParamFiles], cmd.Params[glusterd.ParamKeep] = strings.Join(files, "\n"), keep
	if keep != glusterd.KeepLatest && keep != glusterd.KeepBigger {
		bricks := bricksAt(view, v, keep)
		if len(bricks) == 0 {
			return nil, cmd, refusef("%q is no node with a brick of volume %s that serves: keep %q, %q, or the "+
				"copy of one of %s",
				keep, name, glusterd.KeepLatest, glusterd.KeepBigger, words.Few(Copies(v)))
		}
		cmd.Params[glusterd.ParamKeep], cmd.Params[glusterd.ParamBricks] = glusterd.KeepBrick, strings.Join(bricks, " ")
	}
	for j := range view.Daemons {
		d := &view.Daemons[j]
		if d.Spec.Type == glusterd.Type && d.Spec.Parameters[glusterd.ParamReport] == glusterd.DepthPool &&
			d.Status.State == api.DaemonRunning {
			cmd.Daemon = d.Name
			return d, cmd, nil
		}
	}
	return nil, cmd, errors.New("waiting for a glusterd of the cluster that reports on the pool")
}

// notSplit says why a file cannot be meant. The list of those in split-brain is bounded, and names
// a directory for the files in it that were made anew on both sides.
func notSplit(v *api.Volume, file string) string {
	all := v.Status.SplitBrains
	trimmed := func(s string) string { return strings.Trim(s, "<>") }
	switch {
	case len(all) == 0:
		return fmt.Sprintf("nothing of volume %s is in split-brain", v.Name)
	case strings.HasPrefix(file, "gfid:") && !strings.ContainsAny(file, "/\n"):
		return ""
	case !strings.HasPrefix(file, "/") || path.Clean(file) != file:
		return fmt.Sprintf("%q is no path within the volume: it begins with a slash, as in its status", file)
	case len(all) >= Most || slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "<") }):
		return "" // more than is listed by name
	case slices.ContainsFunc(all, func(s string) bool { return trimmed(s) == file || s == path.Dir(file) }):
		return ""
	}
	return fmt.Sprintf("%s is not in split-brain, nor in a directory that is: %s", file, words.Few(all))
}

// bricksAt are a volume's bricks on a node, in the pool's words.
func bricksAt(view *engine.View, v *api.Volume, node string) (names []string) {
	for i := range view.Daemons {
		d := &view.Daemons[i]
		if d.Spec.Type != glusterd.Type || d.Spec.ID != node {
			continue
		}
		for _, b := range v.Status.Bricks {
			if b.Node == node && b.Online {
				names = append(names, d.Spec.Parameters[glusterd.ParamAddress]+":"+b.Path)
			}
		}
	}
	return names
}

// Copies are the nodes that have a copy of the volume's files, or of some of them.
func Copies(v *api.Volume) (nodes []string) {
	for _, b := range v.Status.Bricks {
		if !slices.Contains(nodes, b.Node) {
			nodes = append(nodes, b.Node)
		}
	}
	return nodes
}
