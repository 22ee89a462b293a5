package issue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var errLost = errors.New("the answer is lost")

// chaos is a world whose API servers refuse requests, lose answers, carry writes out late, and whose caches show any
// earlier state, as after a restart on an API server that lags.
type chaos struct {
	*world

	random  *rand.Rand
	bad     client.WithWatch
	shown   []client.Reader
	delayed []func() error
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	c := &chaos{world: newWorld(t), random: rand.New(rand.NewPCG(seed, 3))}
	write := func(do func() error) error {
		switch c.random.IntN(10) {
		case 0:
			return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
		case 1:
			_ = do()
			return errLost
		case 2:
			c.delayed = append(c.delayed, do)
			return errLost
		}
		return do()
	}
	read := func(do func() error) error {
		if c.random.IntN(10) == 0 {
			return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
		}
		return do()
	}
	c.bad = interceptor.NewClient(c.api, interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			sent := copyOf(o)
			return write(func() error {
				err := to.Create(ctx, sent, opts...)
				if err == nil {
					copyInto(sent, o)
				}
				return err
			})
		},
		Update: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			sent := copyOf(o)
			return write(func() error {
				err := to.Update(ctx, sent, opts...)
				if err == nil {
					copyInto(sent, o)
				}
				return err
			})
		},
		Delete: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return to.Delete(ctx, copyOf(o), opts...) })
		},
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			return read(func() error { return to.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, to client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			return read(func() error { return to.List(ctx, o, opts...) })
		},
	})
	return c
}

func copyInto(from, to client.Object) {
	to.SetUID(from.GetUID())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetCreationTimestamp(from.GetCreationTimestamp())
}

func (c *chaos) act() {
	ctx := c.t.Context()
	agent := cached{Client: c.bad, world: c.world}
	issuer := Issuer{Hub: c.bad, HubLive: c.bad, Agent: agent, AgentLive: c.bad, Namespace: "agent", HubName: "hub"}
	var seen *corev1.Secret
	answer, err := issuer.Ask(ctx, Task{Now: c.now, Want: wanted,
		Load: func(ctx context.Context, live bool) (Pair, bool, error) {
			reader := client.Reader(agent)
			if live {
				reader = c.bad
			}
			var secret corev1.Secret
			if err := reader.Get(ctx, credentialKey, &secret); err != nil {
				seen = nil
				return Pair{}, false, client.IgnoreNotFound(err)
			}
			seen = &secret
			return PairOf(&secret), false, nil
		},
	})
	if err != nil || answer.Step != StepTake {
		return
	}
	if seen == nil {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: "credential"}}
		answer.Pair.Put(secret)
		err = c.bad.Create(ctx, secret)
	} else {
		answer.Pair.Put(seen)
		err = c.bad.Update(ctx, seen)
	}
	if err != nil || c.random.IntN(10) == 0 { // or it was killed
		return
	}
	_ = issuer.Finish(ctx, answer)
}

// TestNoLieOfAnAPIServerLeadsToASecondRequest walks through many rotations of certificates of 3 minutes, and sees that
// each request but the first comes in the last quarter of the life of the last certificate.
func TestNoLieOfAnAPIServerLeadsToASecondRequest(t *testing.T) {
	const life, steps = 3 * time.Minute, 300
	rotations := 0
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			c := newChaos(t, seed)
			c.now = noon.Add(time.Hour)
			var from time.Time // when the last certificate was issued
			for range steps {
				before := len(c.created)
				c.act()
				for n := 0; n < len(c.delayed); n++ {
					if c.random.IntN(4) == 0 {
						_ = c.delayed[n]()
						c.delayed = append(c.delayed[:n], c.delayed[n+1:]...)
						n--
					}
				}
				if len(c.created) > before {
					require.Len(t, c.created, before+1)
					share := float64(c.now.Sub(from)) / float64(life)
					require.True(t, before == 0 || share > 0.74, "request %d at %.2f of the life of the last certificate",
						before+1, share)
					rotations++
				}
				if c.random.IntN(3) == 0 {
					for _, request := range c.requests() {
						if len(request.Status.Certificate) == 0 {
							from = c.now
							request.Status.Certificate = c.ca.sign(t, request.Spec.Request, c.now.Add(-5*time.Minute), c.now.Add(life), nil)
							require.NoError(t, c.api.Status().Update(t.Context(), &request))
						}
					}
				}
				if all := c.requests(); len(all) > 3 { // the hub cleans them up, long before
					for _, old := range all {
						if len(old.Status.Certificate) > 0 && c.now.Sub(old.CreationTimestamp.Time) > 3*life {
							require.NoError(t, c.api.Delete(t.Context(), &old))
						}
					}
				}
				c.shown = append(c.shown, c.snapshot())
				c.shown = c.shown[max(0, len(c.shown)-12):]
				c.pendings = c.shown[c.random.IntN(len(c.shown))]
				c.credentials = c.shown[c.random.IntN(len(c.shown))]
				c.now = c.now.Add(time.Duration(c.random.IntN(6000)) * time.Millisecond)
			}
		})
	}
	require.Greater(t, rotations, 15, "certificates rotate")
}

// copyOf returns a copy of an object.
func copyOf(o client.Object) client.Object {
	c, isObject := o.DeepCopyObject().(client.Object)
	if !isObject {
		panic("a copy of an object is none")
	}
	return c
}
