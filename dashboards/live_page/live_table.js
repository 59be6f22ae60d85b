// A table whose cells stay what they are when their figures change: what has the focus, or is selected, keeps it.
export default {
  template: `
    <q-table :columns="columns">
      <template #header-cell="props">
        <q-th
          :props="props"
          tabindex="0"
          :aria-sort="sorted(props.col)"
          @keydown.enter.prevent="$event.currentTarget.click()"
          @keydown.space.prevent="$event.currentTarget.click()"
          >{{ props.col.label }}<q-tooltip v-if="props.col.hint">{{ props.col.hint }}</q-tooltip></q-th
        >
      </template>
      <template #body-cell="props">
        <q-td :props="props">
          <template v-if="props.col.look === 'agent'">
            <a class="sb-name" :href="'/agent/' + props.row.token" @click.stop>{{ props.row.name }}</a>
            <div class="sb-under sb-narrow">{{ props.row.family }}</div>
          </template>
          <template v-else-if="props.col.look === 'family'">
            <button v-if="choosable" type="button" class="sb-name sb-choice" @click.stop="$emit('choose', props.row.key)"
              >{{ props.row.family }}</button>
            <span v-else class="sb-name">{{ props.row.family }}</span>
            <div class="sb-under">{{ props.row.method }}</div>
            <div v-if="props.row.learning" class="sb-under">{{ props.row.learning }}</div>
            <div v-if="props.row.narrow" class="sb-under sb-narrow">{{ props.row.narrow }}</div>
          </template>
          <template v-else-if="props.col.look === 'state'">
            <span :class="'sb-state sb-state--' + props.row.state"
              ><q-icon :name="props.row.icon" aria-hidden="true" />{{ props.row.word }}</span>
            <div v-if="props.row.remark" class="sb-under">{{ props.row.remark }}</div>
          </template>
          <span v-else-if="props.col.look === 'mark'" :class="'sb-state sb-state--' + props.row[props.col.name + '_mark']"
            ><q-icon :name="props.row[props.col.name + '_icon']" aria-hidden="true" />{{ props.row[props.col.name]
            }}<q-tooltip>{{ props.row[props.col.name + '_hint'] }}</q-tooltip></span>
          <template v-else-if="props.col.look === 'remark'">
            {{ props.row[props.col.name] }}
            <div v-if="props.row[props.col.name + '_remark']" class="sb-under">{{ props.row[props.col.name + '_remark'] }}</div>
            <div v-if="props.row[props.col.name + '_alarm']" class="sb-under sb-alarm">{{ props.row[props.col.name + '_alarm'] }}</div>
          </template>
          <template v-else>
            <span v-if="props.col.look === 'share' && props.row.share !== null" class="sb-meter sb-wide" aria-hidden="true"
              ><span :style="{ width: props.row.share + '%' }"></span></span>
            <span v-if="props.col.look === 'cost' && props.row.since" class="sb-under sb-since sb-wide">{{ props.row.since
              }}</span>
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
      if (!/ sorted/.test(column.__thClass)) return "none";
      return /sort-desc/.test(column.__thClass) ? "descending" : "ascending";
    },
  },
};
