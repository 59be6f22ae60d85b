// A table whose cells stay what they are when their figures change: what has the focus, or is selected, keeps it.
import { When } from "springback-live";

export default {
  components: { When },
  template: `
    <q-table :columns="columns">
      <template #header-cell="props">
        <q-th
          :props="props"
          :tabindex="props.col.sortable ? 0 : null"
          :aria-label="props.col.label"
          :aria-sort="sorted(props.col)"
          @keydown.enter.self.prevent="$event.currentTarget.click()"
          @keydown.space.self.prevent="$event.currentTarget.click()"
          >{{ props.col.label }}<button
            v-if="props.col.word"
            type="button"
            class="sb-term sb-mark"
            :data-word="props.col.word"
            :aria-describedby="props.col.word"
            :aria-label="'What ' + props.col.label + ' means'"
            >?</button><button
            v-else-if="props.col.hint"
            type="button"
            class="sb-term sb-mark"
            :data-tip="props.col.hint"
            :aria-label="'What ' + props.col.label + ' means'"
            >?</button></q-th
        >
      </template>
      <template #body-cell="props">
        <q-td :props="props">
          <template v-if="props.col.look === 'agent'">
            <a class="sb-name" :href="props.row.href" @click.stop>{{ props.row.name }}</a>
            <div class="sb-under sb-narrow">{{ props.row.family }}</div>
            <div class="sb-under sb-narrow"><when v-if="typeof props.row.seen === 'number'" :at="props.row.seen"
              /><template v-else>{{ props.row.seen }}</template></div>
          </template>
          <template v-else-if="props.col.look === 'link' && props.row[props.col.name + '_href']">
            <a class="sb-link" :href="props.row[props.col.name + '_href']" @click.stop>{{ props.row[props.col.name] }}</a>
            <div v-if="props.row[props.col.name + '_narrow']" class="sb-under sb-narrow"
              ><a v-if="props.row[props.col.name + '_of']" class="sb-link" :href="props.row[props.col.name + '_of_href']" @click.stop
                >{{ props.row[props.col.name + '_of'] }}</a>
              {{ props.row[props.col.name + '_narrow'] }}</div>
          </template>
          <when v-else-if="props.col.look === 'when' && typeof props.row[props.col.name] === 'number'" :at="props.row[props.col.name]" />
          <template v-else-if="props.col.look === 'family'">
            <button v-if="choosable" type="button" class="sb-name sb-choice" @click.stop="$emit('choose', props.row.key)"
              >{{ props.row.family }}</button>
            <a v-else class="sb-name" :href="props.row.href" @click.stop>{{ props.row.family }}</a>
            <div class="sb-under">{{ props.row.method }}</div>
            <div v-if="props.row.learning" class="sb-under">{{ props.row.learning }}</div>
            <div v-if="props.row.narrow" class="sb-under sb-narrow">{{ props.row.narrow }}</div>
          </template>
          <template v-else-if="props.col.look === 'state'">
            <span :class="'sb-state sb-state--' + props.row.state"
              ><q-icon :name="props.row.icon" aria-hidden="true" />{{ props.row.word }}</span>
            <div v-if="props.row.remark" class="sb-under">{{ props.row.remark }}</div>
            <div v-if="props.row.since" class="sb-under sb-narrow">cost {{ props.row.cost }}</div>
          </template>
          <button
            v-else-if="props.col.look === 'mark'"
            type="button"
            :class="'sb-told-by sb-state sb-state--' + props.row[props.col.name + '_mark']"
            :data-word="props.row[props.col.name + '_word']"
            :aria-describedby="props.row[props.col.name + '_word']"
            ><q-icon :name="props.row[props.col.name + '_icon']" aria-hidden="true" />{{ props.row[props.col.name] }}</button>
          <template v-else-if="props.col.look === 'remark'">
            {{ props.row[props.col.name] }}
            <div v-if="props.row[props.col.name + '_remark']" class="sb-under">{{ props.row[props.col.name + '_remark'] }}</div>
            <div v-if="props.row[props.col.name + '_alarm']" class="sb-under sb-alarm">{{ props.row[props.col.name + '_alarm'] }}</div>
          </template>
          <template v-else>
            <span v-if="props.col.look === 'share' && props.row.share !== null" class="sb-meter sb-wide" aria-hidden="true"
              ><span :style="{ width: props.row.share + '%' }"></span></span>
            <template v-if="props.col.look === 'cost' && props.row.since"
              ><a v-if="props.row.since_href" class="sb-link sb-under sb-since sb-wide" :href="props.row.since_href" @click.stop
                >{{ props.row.since }}</a
              ><span v-else class="sb-under sb-since sb-wide">{{ props.row.since }}</span></template>
            {{ props.row[props.col.name] }}
          </template>
        </q-td>
      </template>
    </q-table>
  `,
  props: { columns: Array, choosable: Boolean },
  emits: ["choose"],
  methods: {
    sorted(column) {
      if (!column.sortable) return null;
      if (!/ sorted/.test(column.__thClass)) return "none";
      return /sort-desc/.test(column.__thClass) ? "descending" : "ascending";
    },
  },
};
