# SPDX-License-Identifier: MIT
"""kafka: one real Kafka broker (KRaft), and what tests do to it beside idemd."""
import dataclasses
import json
import os
import subprocess
import uuid

import confluent_kafka
from confluent_kafka import admin

from .process import TOP, Server, free_port
from .wait import wait_until

_BYTES_MAX = 20 * 1024 * 1024
_CONFIG = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=500
group.consumer.heartbeat.interval.ms=500
message.max.bytes={bytes_max}
controlled.shutdown.enable=false
log.cleaner.enable=false
num.network.threads=2
num.io.threads=2
"""


@dataclasses.dataclass
class Record:
    """A record to send, or one that was read back (then with topic and offset)."""
    key: object = None
    value: object = None
    headers: object = ()
    partition: int = None
    timestamp: int = None
    topic: str = None
    offset: int = None

    def header(self, name):
        """The first header of that name, as bytes; None if there is none."""
        return next((value for key, value in self.headers if key == name), None)

    def json(self):
        return json.loads(self.value)


def _bytes(value):
    if isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False)
    return value.encode() if isinstance(value, str) else value


class Kafka(Server):
    name = "kafka"

    def __init__(self, folder):
        super().__init__(folder)
        self.bootstrap = f"{self.host}:{self.port}"
        self.jars = subprocess.run([TOP / "scripts/kafka-jars"], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.strip()
        self.config_path = self.folder / "server.properties"
        self.config_path.write_text(_CONFIG.format(
            port=self.port, controller=free_port(), data=self.folder / "data",
            bytes_max=_BYTES_MAX))
        self._java("kafka.tools.StorageTool", "format", "-t", "aWRlbWQtdGVzdC1jbHVzdGVy",
                   "-c", self.config_path)
        self._admin = None

    def _argv(self, heap, program, *args):
        return ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-cp", f"{self.jars}/*", program, *map(str, args)]

    def _java(self, program, *args):
        done = subprocess.run(self._argv("128m", program, *args), text=True, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, f"{program} {args}: {done.stdout}"
        return done.stdout

    def command(self):
        return self._argv("512m", "kafka.Kafka", self.config_path)

    def answers(self):
        # A client of its own each time: an old one holds on to its failed connections.
        probe = admin.AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            return probe.list_topics(timeout=1).brokers
        except confluent_kafka.KafkaException:
            return None

    @property
    def admin(self):
        if not self._admin:
            self._admin = admin.AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return self._admin

    # Topics

    def create_topic(self, name=None, partitions=1, **config):
        name = name or f"t-{uuid.uuid4().hex[:12]}"
        config = {key.replace("_", "."): str(value) for key, value in config.items()}
        topic = admin.NewTopic(name, num_partitions=partitions, replication_factor=1,
                               config=config)
        self.admin.create_topics([topic], operation_timeout=30)[name].result(60)
        self._wait_partitions(name, partitions)
        return name

    def _wait_partitions(self, name, count):
        def visible():
            topic = self.admin.list_topics(name, timeout=10).topics[name]
            return (topic.error is None and len(topic.partitions) == count
                    and all(p.leader >= 0 for p in topic.partitions.values()))
        wait_until(visible, 30, f"topic {name} with {count} partitions")

    def delete_topic(self, name):
        self.admin.delete_topics([name], operation_timeout=30)[name].result(60)

        def gone():
            return name not in self.admin.list_topics(timeout=10).topics
        wait_until(gone, 30, f"topic {name} to go")

    def add_partitions(self, name, total):
        self.admin.create_partitions([admin.NewPartitions(name, total)])[name].result(60)
        self._wait_partitions(name, total)

    def partitions(self, topic):
        return sorted(self.admin.list_topics(topic, timeout=10).topics[topic].partitions)

    # Records

    def produce(self, topic, records, **config):
        """Sends the records in their order, waits for every report; [(partition, offset)]."""
        where = [None] * len(records)
        failed = []

        def report(index):
            def delivered(error, message):
                if error:
                    failed.append((index, str(error)))
                else:
                    where[index] = (message.partition(), message.offset())
            return delivered

        producer = confluent_kafka.Producer({
            "bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5,
            "message.max.bytes": _BYTES_MAX, "log_level": 0,
            **{key.replace("_", "."): value for key, value in config.items()}})
        for index, record in enumerate(records):
            headers = record.headers
            pairs = headers.items() if isinstance(headers, dict) else headers
            extra = {}
            if record.partition is not None:
                extra["partition"] = record.partition
            if record.timestamp is not None:
                extra["timestamp"] = record.timestamp
            while True:
                try:
                    producer.produce(topic, value=_bytes(record.value), key=_bytes(record.key),
                                     headers=[(n, _bytes(v)) for n, v in pairs],
                                     on_delivery=report(index), **extra)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        left = producer.flush(60)
        assert not left and not failed, f"{left} records undelivered, failed: {failed[:5]}"
        return where

    def read(self, topic, timeout=30):
        """Everything in the topic up to its present end, by partition and offset."""
        ends = self.end_offsets(topic)
        begins = self.begin_offsets(topic)
        todo = {p for p in ends if ends[p] > begins[p]}
        consumer = self._consumer(f"read-{uuid.uuid4().hex}")
        found = []
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, p, begins[p]) for p in todo])

            def finished():
                for message in consumer.consume(1000, 0.2) if todo else ():
                    if message.error():
                        eof = confluent_kafka.KafkaError._PARTITION_EOF
                        assert message.error().code() == eof, message.error()
                        todo.discard(message.partition())
                        continue
                    if message.offset() < ends[message.partition()]:
                        found.append(Record(message.key(), message.value(),
                                            message.headers() or [], message.partition(),
                                            message.timestamp()[1], topic, message.offset()))
                return not todo
            wait_until(finished, timeout, f"the end of {topic}", 0)
        finally:
            consumer.close()
        return sorted(found, key=lambda r: (r.partition, r.offset))

    def _consumer(self, group):
        return confluent_kafka.Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": group, "log_level": 0,
            "enable.auto.commit": False, "enable.partition.eof": True,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest"})

    # Offsets and groups

    def _watermarks(self, topic, which):
        consumer = self._consumer("watermarks")
        try:
            return {p: consumer.get_watermark_offsets(
                        confluent_kafka.TopicPartition(topic, p), timeout=20)[which]
                    for p in self.partitions(topic)}
        finally:
            consumer.close()

    def begin_offsets(self, topic):
        return self._watermarks(topic, 0)

    def end_offsets(self, topic):
        return self._watermarks(topic, 1)

    def committed(self, group, topic):
        consumer = self._consumer(group)
        try:
            wanted = [confluent_kafka.TopicPartition(topic, p) for p in self.partitions(topic)]
            return {p.partition: p.offset for p in consumer.committed(wanted, timeout=20)
                    if p.offset >= 0}
        finally:
            consumer.close()

    def commit(self, group, topic, offsets):
        """Writes a group's offsets by hand; the group must have no members."""
        consumer = self._consumer(group)
        try:
            done = consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, p, o)
                                            for p, o in offsets.items()], asynchronous=False)
            assert all(not p.error for p in done), done
        finally:
            consumer.close()

    def forget(self, group):
        """Deletes a group and its offsets, as their retention would; it must have no members."""
        self._java("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
                   "--bootstrap-server", self.bootstrap, "--delete", "--group", group)

    def wait_committed(self, group, topic, offsets=None, timeout=30):
        """Waits until the group stands at these offsets (None: at the end of the topic)."""
        if offsets is None:
            offsets = {p: end for p, end in self.end_offsets(topic).items() if end > 0}

        def there():
            now = self.committed(group, topic)
            return all(now.get(p) == o for p, o in offsets.items()) and now or not offsets
        wait_until(there, timeout, f"group {group} to stand at {offsets} of {topic}", 0.2)

    def members(self, group):
        found = self.admin.list_groups(group, timeout=20)
        return sum(len(g.members) for g in found)

    def delete_records(self, topic, before):
        """Drops the records before these offsets, as retention would."""
        plan = self.folder / f"delete-{uuid.uuid4().hex}.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [
            {"topic": topic, "partition": p, "offset": o} for p, o in before.items()]}))
        self._java("org.apache.kafka.tools.DeleteRecordsCommand",
                   "--bootstrap-server", self.bootstrap, "--offset-json-file", plan)
        os.unlink(plan)
        wait_until(lambda: all(self.begin_offsets(topic)[p] >= o for p, o in before.items()),
                   30, f"records of {topic} to go")
