package brokers

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-dev/millrace/internal/await"
)

// kafkaCluster is a cluster in this process that speaks Kafka's protocol.
type kafkaCluster struct {
	t       *testing.T
	cluster *kfake.Cluster
	down    atomic.Bool
	next    [partitions]int64 // offsets of the next messages to read
	taken   []*message.Message
}

// partitions is the number of partitions, one for each process that receives. If a process has two,
// and only one of them has more messages, this cluster sends no records of the other one as null.
// A real broker sends an empty set. Sarama refuses such a reply, so the process would receive
// nothing until both have messages.
const partitions = 2

func newKafka(t *testing.T) broker {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "orders"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	b := &kafkaCluster{t: t, cluster: cluster}
	cluster.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		produce, ok := r.(*kmsg.ProduceRequest)
		switch {
		case !ok:
		case b.down.Load():
			return refused(produce), nil, true
		default:
			setEpoch(produce)
		}
		return nil, nil, false
	})
	return b
}

// refused returns the reply of a broker that cannot reach its replicas. An error would close the
// connection, but then this cluster would hang if the client had sent more requests.
func refused(r *kmsg.ProduceRequest) kmsg.Response {
	reply := r.ResponseKind().(*kmsg.ProduceResponse) //nolint:forcetypeassert // it always is
	for _, topic := range r.Topics {
		of := kmsg.NewProduceResponseTopic()
		of.Topic = topic.Topic
		for _, p := range topic.Partitions {
			failed := kmsg.NewProduceResponseTopicPartition()
			failed.Partition, failed.ErrorCode = p.Partition, int16(sarama.ErrNotEnoughReplicas)
			of.Partitions = append(of.Partitions, failed)
		}
		reply.Topics = append(reply.Topics, of)
	}
	return reply
}

// setEpoch sets the epoch of the partition's leader in each batch to -1, which this cluster
// requires. A real broker accepts any value, and overwrites it.
func setEpoch(r *kmsg.ProduceRequest) {
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			if len(p.Records) >= 16 {
				binary.BigEndian.PutUint32(p.Records[12:], math.MaxUint32)
			}
		}
	}
}

func (b *kafkaCluster) address() string { return b.cluster.ListenAddrs()[0] }

func (b *kafkaCluster) outage(d time.Duration) {
	b.down.Store(true)
	defer b.down.Store(false)
	time.Sleep(d)
}

func (b *kafkaCluster) all() []*message.Message {
	client, err := sarama.NewClient(b.cluster.ListenAddrs(), nil)
	require.NoError(b.t, err)
	consumer, err := sarama.NewConsumerFromClient(client)
	require.NoError(b.t, err)
	for p := range int32(partitions) {
		end, err := client.GetOffset("orders", p, sarama.OffsetNewest)
		require.NoError(b.t, err)
		if b.next[p] == end {
			continue
		}
		of, err := consumer.ConsumePartition("orders", p, b.next[p])
		require.NoError(b.t, err)
		for ; b.next[p] < end; b.next[p]++ {
			msg, err := kafka.DefaultMarshaler{}.Unmarshal(await.Receive(b.t, of.Messages(), "a message"))
			require.NoError(b.t, err)
			b.taken = append(b.taken, msg)
		}
		require.NoError(b.t, of.Close())
	}
	require.NoError(b.t, consumer.Close())
	require.NoError(b.t, client.Close())
	return b.taken
}
